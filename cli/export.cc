#include "cli/export.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "cli/context.h"
#include "cli/entry_score.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/client/stubs.h"
#include "common/file.h"
#include "common/json_document.h"
#include "common/package/system_description.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_grpc.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr absl::Duration kDownloadTimeout = absl::Minutes(10);

const v1::ArtifactRef* ResultFile(const v1::Run& run) {
  for (const v1::ArtifactRef& artifact : run.artifacts())
    if (absl::StartsWith(artifact.file_name(), "result_")) return &artifact;
  return nullptr;
}

// The runs that make up the package: those that ended in order, count for the result and left
// their log.
std::vector<v1::Run> PackagedRuns(const v1::Submission& entry, const std::vector<v1::Run>& runs) {
  std::vector<v1::Run> packaged;
  for (const v1::Run& run : RunsThatCount(entry, runs))
    if (ResultFile(run) != nullptr) packaged.push_back(run);
  return packaged;
}

std::string ReadmeText(const v1::Submission& entry, const std::vector<v1::Run>& runs) {
  const v1::SubmissionSpec& spec = entry.spec();
  std::string text = absl::StrCat(
      "# ", spec.benchmark(), " on ", spec.system(), "\n\n",
      entry.is_mlperf_result() || entry.is_imported()
          ? ""
          : "This is a facility's own round. Its results are not MLPerf results.\n\n",
      "| | |\n|---|---|\n", "| entry | ", client::ShortId(entry.name()), " |\n", "| round | ",
      spec.round(), " |\n", "| rules | sha256:", entry.rules_digest(), " |\n", "| division | ",
      spec.division(), " |\n", "| dataset | ", spec.dataset(), " |\n");
  if (spec.has_borrowing())
    absl::StrAppend(&text, "| hyperparameters | borrowed from ",
                    client::ShortId(spec.borrowing().lender_entry()), " in place of those of ",
                    client::ShortId(spec.borrowing().own_entry()), " |\n");
  if (entry.has_score_minutes())
    absl::StrAppend(&text, "| score | ", entry.score_minutes(), " min (olympic mean) |\n");
  absl::StrAppend(&text, "\n| run | seed | result file | sha256 |\n|---|---|---|---|\n");
  for (const v1::Run& run : runs)
    absl::StrAppend(&text, "| ", client::ShortId(run.name()), " | ", run.seed(), " | ",
                    ResultFile(run)->file_name(), " | ", ResultFile(run)->sha256(), " |\n");
  absl::StrAppend(&text,
                  "\nTo run it again: `setup.sh`, `init_datasets.sh`, `run_and_time.sh`. The seeds "
                  "of new runs\nare issued by the coordinator and will differ.\n");
  return text;
}

constexpr char kSetupScript[] =
    "#!/usr/bin/env bash\n"
    "# Checks that Assay's programs and a coordinator are at hand.\n"
    "set -euo pipefail\n"
    "assay doctor\n";

std::string DatasetScript(const v1::Submission& entry) {
  return absl::StrCat("#!/usr/bin/env bash\n",
                      "# Checks the dataset at the path given and registers it.\n",
                      "set -euo pipefail\n", "assay dataset verify \"$1\"\n", "assay dataset add ",
                      entry.spec().dataset(), " \"$1\"\n");
}

constexpr char kRunScript[] =
    "#!/usr/bin/env bash\n"
    "# Submits the same entry again and waits for its score.\n"
    "set -euo pipefail\n"
    "assay submit \"$(dirname \"$0\")/submission.toml\" --wait\n";

class Exporter {
 public:
  Exporter(const Context* context, const client::Client* client, v1::Submission entry,
           std::vector<v1::Run> runs, std::string root)
      : context_(context),
        client_(client),
        entry_(std::move(entry)),
        runs_(std::move(runs)),
        root_(JoinPath(root, PathPart(entry_.spec().organization()))) {}

  absl::Status Write() {
    const v1::SubmissionSpec& spec = entry_.spec();
    const std::string results = JoinPath(root_, ResultsPath());
    if (FileExists(results))
      return absl::AlreadyExistsError(
          absl::StrCat(results, " is there already; results are never mixed: export elsewhere"));
    RETURN_IF_ERROR(WriteResults(results));
    const std::string system = PathPart(spec.system());
    ASSIGN_OR_RETURN(const Json description, NodeDescription());
    RETURN_IF_ERROR(Put(absl::StrCat("systems/", system, ".json"),
                        SystemJson(entry_, description).dump(4) + "\n"));
    return WriteBenchmark(absl::StrCat("benchmarks/", PathPart(spec.benchmark()), "/", system));
  }

  const std::string& root() const { return root_; }

  // results/SYSTEM[/strong]/BENCHMARK: v0.7 knows no strong and weak (section 4.1).
  std::string ResultsPath() const {
    const v1::SubmissionSpec& spec = entry_.spec();
    std::string scaling = entry_.scaling();
    if (scaling.empty() && spec.round() != "hpc-0.7.0") scaling = "strong";
    return absl::StrCat("results/", PathPart(spec.system()), scaling.empty() ? "" : "/", scaling,
                        "/", PathPart(spec.benchmark()));
  }

 private:
  absl::Status Put(const std::string& path, absl::string_view content, int mode = 0644) {
    const std::string full = JoinPath(root_, path);
    RETURN_IF_ERROR(MakeDirectories(full.substr(0, full.rfind('/'))));
    return WriteFileAtomic(full, content, mode);
  }

  absl::Status WriteResults(const std::string& directory) {
    RETURN_IF_ERROR(MakeDirectories(directory));
    ProgressLine progress(context_);
    for (const v1::Run& run : runs_) {
      const v1::ArtifactRef& artifact = *ResultFile(run);
      progress.Draw(absl::StrCat("fetching ", artifact.file_name()));
      ASSIGN_OR_RETURN(const std::string log, DownloadArtifact(*client_, artifact));
      RETURN_IF_ERROR(WriteFileAtomic(JoinPath(directory, PathPart(artifact.file_name())), log));
    }
    return absl::OkStatus();
  }

  // Of the first node that ran; empty for imported history, whose nodes nobody has seen.
  absl::StatusOr<Json> NodeDescription() {
    for (const v1::Run& run : runs_) {
      if (run.workers().empty()) continue;
      v1::GetWorkerRequest request;
      request.set_name(run.workers(0));
      const absl::StatusOr<v1::Worker> worker = client_->Call(request);
      if (absl::IsNotFound(worker.status())) continue;
      RETURN_IF_ERROR(worker.status());
      Json json = ParseJsonDocument<Json>(worker->system_description_json());
      if (json.is_object()) return json;
    }
    context_->Note("no node describes itself: fill in systems/*.json before handing it in");
    return Json::object();
  }

  absl::Status WriteBenchmark(const std::string& directory) {
    RETURN_IF_ERROR(Put(JoinPath(directory, "README.md"), ReadmeText(entry_, runs_)));
    RETURN_IF_ERROR(Put(JoinPath(directory, "submission.toml"), SubmissionToml(entry_)));
    constexpr int kExecutable = 0755;
    RETURN_IF_ERROR(Put(JoinPath(directory, "setup.sh"), kSetupScript, kExecutable));
    RETURN_IF_ERROR(
        Put(JoinPath(directory, "init_datasets.sh"), DatasetScript(entry_), kExecutable));
    RETURN_IF_ERROR(Put(JoinPath(directory, "run_and_time.sh"), kRunScript, kExecutable));
    const std::string system_file = absl::StrCat(PathPart(entry_.spec().system()), "_assay.json");
    const Json implementation = {{"implementation", "assay"},
                                 {"version", ASSAY_VERSION},
                                 {"entry", client::ShortId(entry_.name())},
                                 {"round", entry_.spec().round()},
                                 {"rules_digest", entry_.rules_digest()}};
    return Put(JoinPath(directory, system_file), implementation.dump(4) + "\n");
  }

  const Context* const context_;
  const client::Client* const client_;
  const v1::Submission entry_;
  const std::vector<v1::Run> runs_;
  const std::string root_;
};

absl::StatusOr<ExitStatus> RunExport(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::Submission entry, client::GetEntry(*client, arguments.Get("ID")));
  if (!client::IsEnded(entry.state())) {
    return absl::FailedPreconditionError(
        absl::StrCat(client::ShortId(entry.name()), " is ", client::StateText(entry.state()),
                     "; wait for its end with 'assay wait ", client::ShortId(entry.name()), "'"));
  }
  ASSIGN_OR_RETURN(const std::vector<v1::Run> all, client::AllRunsOf(*client, entry.name()));
  const std::vector<v1::Run> runs = PackagedRuns(entry, all);
  if (runs.empty())
    return absl::FailedPreconditionError(
        absl::StrCat(client::ShortId(entry.name()), " has no run that left a result file"));
  Exporter exporter(context, client, entry, runs,
                    context->env().AbsolutePath(arguments.Get("DIR")));
  RETURN_IF_ERROR(exporter.Write());
  if (context->printer().IsJson()) {
    RETURN_IF_ERROR(context->printer().Show(
        {.schema = "assay.export/v1",
         .value = {{"entry", client::ShortId(entry.name())},
                   {"path", exporter.root()},
                   {"results", JoinPath(exporter.root(), exporter.ResultsPath())},
                   {"run_count", runs.size()}}}));
  } else {
    context->out() << "exported " << client::ShortId(entry.name()) << ": " << runs.size()
                   << " result files, digests checked, to " << exporter.root() << "\n";
  }
  context->Note(absl::StrCat("check it: assay package check --round ", entry.spec().round(), " ",
                             exporter.root()));
  return ExitStatus::kDone;
}

}  // namespace

absl::StatusOr<std::string> DownloadArtifact(const client::Client& client,
                                             const v1::ArtifactRef& artifact) {
  grpc::ClientContext context;
  PrepareCall(client.endpoint(), kDownloadTimeout, &context);
  v1::DownloadArtifactRequest request;
  request.set_sha256(artifact.sha256());
  const auto reader = client.stubs().submissions->DownloadArtifact(&context, request);
  std::string bytes;
  v1::ArtifactChunk chunk;
  while (reader->Read(&chunk))
    bytes += chunk.data();
  const grpc::Status status = reader->Finish();
  if (!status.ok()) return client.Explain(FromGrpc(status));
  if (Sha256Hex(bytes) != artifact.sha256())
    return absl::DataLossError(absl::StrCat(artifact.file_name(), ": what arrived has not the ",
                                            "digest ", artifact.sha256(), "; try again"));
  return bytes;
}

std::string PathPart(absl::string_view text) {
  std::string part(text);
  for (char& c : part)
    if (c == '/' || c == ' ' || static_cast<unsigned char>(c) < 0x20) c = '_';
  if (part.empty() || part[0] == '.') return absl::StrCat("_", part);
  return part;
}

Json SystemJson(const v1::Submission& entry, const Json& node_description) {
  Json json = Json::object();
  for (const char* member : package::RequiredSystemMembers()) {
    const auto found = node_description.find(member);
    json[member] = found == node_description.end() ? Json("") : *found;
  }
  const v1::SubmissionSpec& spec = entry.spec();
  json["submitter"] = spec.organization();
  json["division"] = spec.division();
  json["status"] = spec.status();
  json["system_name"] = spec.system();
  json["number_of_nodes"] = absl::StrCat(spec.node_count());
  for (const auto& [member, value] : node_description.items())
    if (!json.contains(member)) json[member] = value;
  return json;
}

std::string SubmissionToml(const v1::Submission& entry) {
  const v1::SubmissionSpec& spec = entry.spec();
  // A JSON string is a TOML basic string.
  const auto quoted = [](const std::string& text) { return Json(text).dump(); };
  std::string text = absl::StrCat(
      "# Made from ", client::ShortId(entry.name()), ".\n", "round = ", quoted(spec.round()),
      "\nbenchmark = ", quoted(spec.benchmark()), "\ndivision = ", quoted(spec.division()),
      "\norganization = ", quoted(spec.organization()), "\nsystem = ", quoted(spec.system()),
      "\ndataset = ", quoted(spec.dataset()), "\nnodes = ", spec.node_count(), "\n");
  const std::pair<const char*, int32_t> numbers[] = {
      {"ranks_per_node", spec.ranks_per_node()},
      {"runs", spec.run_count()},
      {"epochs_max", spec.epoch_count_max()},
      {"replacements", spec.replacement_count_max()}};
  for (const auto& [key, value] : numbers)
    if (value > 0) absl::StrAppend(&text, key, " = ", value, "\n");
  if (!spec.backend().empty()) absl::StrAppend(&text, "backend = ", quoted(spec.backend()), "\n");
  if (!spec.status().empty()) absl::StrAppend(&text, "status = ", quoted(spec.status()), "\n");
  if (!spec.staging().empty()) absl::StrAppend(&text, "staging = ", quoted(spec.staging()), "\n");
  if (spec.hyperparameters_size() > 0) absl::StrAppend(&text, "\n[hyperparameters]\n");
  // JSON numbers, texts, booleans and lists of these are TOML too.
  for (const v1::Hyperparameter& parameter : spec.hyperparameters())
    absl::StrAppend(&text, parameter.key(), " = ", parameter.json_value(), "\n");
  if (!spec.worker_labels().empty()) absl::StrAppend(&text, "\n[labels]\n");
  const std::map<std::string, std::string> labels(spec.worker_labels().begin(),
                                                  spec.worker_labels().end());
  for (const auto& [key, value] : labels)
    absl::StrAppend(&text, quoted(key), " = ", quoted(value), "\n");
  return text;
}

std::vector<Command> ExportCommands() {
  return {{.path = "entry export",
           .summary = "write an entry as MLPerf's directory layout",
           .description = "DIR/ORG gets systems, results and benchmarks. Logs are byte for byte "
                          "what the runs wrote; each digest is checked.",
           .positionals = {{.name = "ID", .help = "e-42 or @last"},
                           {.name = "DIR",
                            .help = "made if it does not exist",
                            .completes = Completes::kDirectory}},
           .examples = {{"assay entry export e-42 package", ""}},
           .run = RunExport}};
}

}  // namespace assay::cli
