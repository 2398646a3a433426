#include "cli/dataset/dataset.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

#include "cli/dataset/dataset_files.h"
#include "cli/dataset/dataset_nodes.h"
#include "common/client/ids.h"
#include "common/client/resource_json.h"
#include "common/dataset/shards.h"
#include "common/status.h"

namespace assay::cli {
namespace {

absl::StatusOr<ExitStatus> RunAdd(Context* context, const Arguments& arguments) {
  const std::string directory = context->env().AbsolutePath(arguments.Get("DIR"));
  ASSIGN_OR_RETURN(const std::string name, client::DatasetName(arguments.Get("ID")));
  ASSIGN_OR_RETURN(const dataset::Manifest manifest, dataset::LoadManifest(directory));
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  v1::AddDatasetRequest request;
  *request.mutable_dataset() = DatasetResource(client::ShortId(name), directory, manifest);
  ASSIGN_OR_RETURN(const v1::Dataset added, client->Call(request));
  if (context->printer().IsJson()) {
    RETURN_IF_ERROR(context->printer().Show(
        {.schema = "assay.dataset/v1", .value = client::DatasetJson(added)}));
    return ExitStatus::kDone;
  }
  context->out() << "registered " << client::ShortId(added.name()) << ": "
                 << added.train_sample_count() << " + " << added.eval_sample_count()
                 << " samples, digest " << added.digest().substr(0, 12) << "\n";
  context->Note("every node must have it at the same path");
  const absl::StatusOr<std::vector<std::string>> shards = dataset::ListShards(directory);
  if (shards.ok() && !shards->empty())
    context->Note("it lies in archives: runs must stage it, with staging = \"node\"");
  return ExitStatus::kDone;
}

absl::StatusOr<std::vector<v1::Dataset>> ListAll(const client::Client& client) {
  ASSIGN_OR_RETURN(const v1::ListDatasetsResponse response, client.Call(v1::ListDatasetsRequest()));
  return std::vector<v1::Dataset>(response.datasets().begin(), response.datasets().end());
}

absl::StatusOr<ExitStatus> RunDatasetList(Context* context, const Arguments&) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const std::vector<v1::Dataset> datasets, ListAll(*client));
  ListView view{.schema = "assay.dataset/v1",
                .columns = {{"ID", "id"},
                            {"BENCHMARK", "benchmark"},
                            {"TRAIN", "train_samples", Format::kNumber},
                            {"EVAL", "eval_samples", Format::kNumber},
                            {"EDGE", "cube_edge", Format::kNumber, 2},
                            {"COMPRESSION", "compression", Format::kText, 3},
                            {"DIGEST", "digest", Format::kDigest, 2},
                            {"PATH", "path", Format::kText, 1}},
                .empty_text = "no datasets; 'assay dataset add ID DIR' registers one"};
  for (const v1::Dataset& item : datasets)
    view.items.push_back(client::DatasetJson(item));
  RETURN_IF_ERROR(context->printer().List(view));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunDatasetShow(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const std::string name, client::DatasetName(arguments.Get("ID")));
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const std::vector<v1::Dataset> datasets, ListAll(*client));
  const auto found = std::find_if(datasets.begin(), datasets.end(),
                                  [&](const v1::Dataset& item) { return item.name() == name; });
  if (found == datasets.end()) {
    return absl::NotFoundError(absl::StrCat("there is no dataset '", client::ShortId(name),
                                            "'; 'assay dataset list' shows all"));
  }
  RETURN_IF_ERROR(context->printer().Show({.schema = "assay.dataset/v1",
                                           .value = client::DatasetJson(*found),
                                           .fields = DatasetFields()}));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunDatasetRemove(Context* context, const Arguments& arguments) {
  v1::RemoveDatasetRequest request;
  ASSIGN_OR_RETURN(*request.mutable_name(), client::DatasetName(arguments.Get("ID")));
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::Dataset removed, client->Call(request));
  context->out() << "removed " << client::ShortId(request.name())
                 << " from the coordinator; its files at " << removed.path() << " are left alone\n";
  return ExitStatus::kDone;
}

}  // namespace

v1::Dataset DatasetResource(const std::string& id, const std::string& directory,
                            const dataset::Manifest& manifest) {
  v1::Dataset resource;
  resource.set_name(absl::StrCat("datasets/", id));
  resource.set_benchmark(manifest.benchmark);
  resource.set_path(directory);
  resource.set_digest(dataset::DatasetDigest(manifest));
  resource.set_train_sample_count(manifest.train_samples);
  resource.set_eval_sample_count(manifest.validation_samples);
  for (const auto& [name, value] : dataset::SampleParameters(manifest))
    (*resource.mutable_parameters())[name] = absl::StrCat(value);
  resource.set_compression(manifest.compression == dataset::Compression::kGzip ? "gzip" : "none");
  return resource;
}

std::vector<Command> DatasetCommands() {
  const Positional directory = {
      .name = "DIR", .help = "the dataset's folder", .completes = Completes::kDirectory};
  const Positional id = {.name = "ID", .help = "as cosmo32", .completes = Completes::kDataset};
  std::vector<Command> commands = {
      DatasetGenerateCommand(),
      DatasetImportCommand(),
      DatasetPackCommand(),
      DatasetIndexCommand(),
      DatasetVerifyCommand(),
      {.path = "dataset add",
       .summary = "register a dataset with the coordinator",
       .positionals = {id, directory},
       .examples = {{"assay dataset add cosmo32 /data/cosmo32", ""}},
       .run = RunAdd},
      {.path = "dataset list",
       .summary = "list registered datasets",
       .examples = {{"assay dataset list", ""}},
       .run = RunDatasetList},
      {.path = "dataset show",
       .summary = "show a registered dataset",
       .positionals = {id},
       .examples = {{"assay dataset show cosmo32", ""}},
       .run = RunDatasetShow},
      DatasetNodesCommand(),
      {.path = "dataset remove",
       .summary = "make the coordinator forget a dataset; its files stay",
       .positionals = {id},
       .examples = {{"assay dataset remove cosmo32", ""}},
       .run = RunDatasetRemove}};
  std::vector<Command> orders = DatasetOrderCommands();
  std::move(orders.begin(), orders.end(), std::back_inserter(commands));
  return commands;
}

}  // namespace assay::cli
