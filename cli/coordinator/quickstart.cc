// assay quickstart: data, entry, runs, score, in one command.

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "cli/command/context.h"
#include "cli/command/share.h"
#include "cli/coordinator/dev.h"
#include "cli/coordinator/dev_coordinator.h"
#include "cli/dataset/dataset.h"
#include "cli/dataset/dataset_files.h"
#include "cli/entry/follow.h"
#include "cli/entry/submit.h"
#include "cli/web/open.h"
#include "common/client/cache_records.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/status.h"

namespace assay::cli {
namespace {

// The round cosmoflow-mini fixes the dataset: deploy/rounds/cosmoflow-mini.toml.
constexpr char kDatasetId[] = "cosmo32";
constexpr int64_t kTrainSamples = 2048;
constexpr int64_t kEvalSamples = 256;
constexpr int kCubeEdge = 32;

// Where the dataset is kept between runs: $XDG_CACHE_HOME/assay or ~/.cache/assay, or /var/tmp
// where there is no home.
std::string DataDirectory(const Environment& env, const std::string& wanted) {
  if (!wanted.empty()) return env.AbsolutePath(wanted);
  const std::string cache = env.UserCacheDirectory();
  if (!cache.empty()) return JoinPath(cache, "datasets/cosmo32");
  return absl::StrCat("/var/tmp/assay-", getuid(), "/datasets/cosmo32");
}

// Makes the dataset and registers it under an id whose digest fits.
absl::StatusOr<std::string> ProvideDataset(Context* context, const client::Client& client,
                                           const std::string& directory) {
  dataset::CosmoDatasetSpec spec;
  spec.name = kDatasetId;
  spec.parameters.edge = kCubeEdge;
  spec.train_samples = kTrainSamples;
  spec.validation_samples = kEvalSamples;
  const MonoTime start = context->env().clock->Mono();
  if (!FileExists(JoinPath(directory, "manifest.json")))
    context->Note(absl::StrCat("making the dataset in ", directory, " (once)"));
  ASSIGN_OR_RETURN(const dataset::Manifest manifest,
                   Generate(*context, directory, spec, DefaultThreads()));
  const absl::Duration elapsed = context->env().clock->Mono() - start;
  const v1::Dataset wanted = DatasetResource(kDatasetId, directory, manifest);
  v1::AddDatasetRequest request;
  *request.mutable_dataset() = wanted;
  const absl::StatusOr<v1::Dataset> added = client.Call(request);
  if (!added.ok() && !absl::IsAlreadyExists(added.status())) return added.status();
  if (!added.ok()) {
    ASSIGN_OR_RETURN(const v1::ListDatasetsResponse known, client.Call(v1::ListDatasetsRequest()));
    const bool is_same =
        std::any_of(known.datasets().begin(), known.datasets().end(), [&](const v1::Dataset& d) {
          return d.name() == wanted.name() && d.digest() == wanted.digest();
        });
    if (!is_same) return added.status();
  }
  context->Note(absl::StrFormat(
      "%s dataset %s   %d + %d samples, %s, digest %s (%.1f s)", context->style().Mark(Tone::kGood),
      kDatasetId, manifest.train_samples, manifest.validation_samples,
      FormatBytes(static_cast<double>(dataset::TotalBytes(manifest))),
      dataset::DatasetDigest(manifest).substr(0, 12), absl::ToDoubleSeconds(elapsed)));
  return std::string(kDatasetId);
}

absl::StatusOr<SubmissionFile> QuickstartFile(const Context& context, const std::string& wanted) {
  if (!wanted.empty()) return LoadSubmissionFile(context, wanted);
  ASSIGN_OR_RETURN(const std::string directory, ShareDirectory(context.env(), "quickstart"));
  return LoadSubmissionFile(context, JoinPath(directory, "cosmoflow-mini.toml"));
}

// "caches when the runs began   cold on 5 nodes, bounded on 1": each run has its own nodes. What
// each word means and how it is known is in `assay run show RUN --caches`.
absl::Status PrintCaches(Context* context, const client::Client& client, const std::string& name) {
  ASSIGN_OR_RETURN(const v1::Submission entry, client::GetEntry(client, name));
  ASSIGN_OR_RETURN(const std::vector<v1::Run> runs, client::AllRunsOf(client, entry.name()));
  std::map<std::string, int> counts;  // of nodes, by how cold they were
  for (const v1::Run& run : runs) {
    ASSIGN_OR_RETURN(const Json caches, client::CachesOf(client, run));
    for (const Json& node : caches)
      ++counts[node.value("coldness", std::string("unknown"))];
  }
  if (counts.empty()) return absl::OkStatus();
  context->Note(absl::StrCat("caches when the runs began   ",
                             absl::StrJoin(counts, ", ", [](std::string* out, const auto& count) {
                               absl::StrAppend(out, count.first, " on ", count.second,
                                               count.second == 1 ? " node" : " nodes");
                             })));
  return absl::OkStatus();
}

void PrintNext(Context* context, const v1::Submission& entry, bool is_kept) {
  const std::string id = client::ShortId(entry.name());
  const std::string run = entry.runs().empty() ? "r-1" : client::ShortId(entry.runs(0));
  if (!is_kept) {
    context->Note(
        "Next:  assay quickstart --keep   leaves the coordinator running, so that you can look at\n"
        "       the runs; assay dev starts an empty one; assay help shows the rest");
    return;
  }
  context->Note(absl::StrCat("Next:  assay run show ", run,
                             " --touch --caches   how each node saw it\n", "       assay run show ",
                             run, " --telemetry        what it did\n", "       assay entry show ",
                             id, "\n", "       assay entry export ", id,
                             " results    the package in MLPerf's layout"));
}

// The way to the runs in a browser, if this coordinator has a site.
void PrintLink(Context* context, const client::Client& client) {
  const absl::StatusOr<SignInLink> link = MakeSignInLink(client, "");
  if (!link.ok()) return;
  context->Note(
      absl::StrCat("Look:  ", link->url, "\n",
                   "       signs your browser in, once, within a minute; 'assay web open' "
                   "prints another.\n",
                   "       It asks about the certificate, which this coordinator has "
                   "signed."));
}

absl::StatusOr<ExitStatus> Run(Context* context, const Arguments& arguments,
                               const client::Client& client) {
  const std::string directory = DataDirectory(context->env(), arguments.Get("data"));
  RETURN_IF_ERROR(ProvideDataset(context, client, directory).status());
  ASSIGN_OR_RETURN(const SubmissionFile file, QuickstartFile(*context, arguments.Get("file")));
  for (const Diagnostic& problem : file.problems)
    *context->env().err << FormatDiagnostic(file, problem);
  if (!file.problems.empty()) return ExitStatus::kUsage;
  ASSIGN_OR_RETURN(const v1::Submission entry, SubmitFile(context, client, file));
  if (entry.name().empty()) return ExitStatus::kRuleViolation;
  const std::string id = client::ShortId(entry.name());
  context->Note(absl::StrCat(context->style().Mark(Tone::kGood), " entry ", id, "   ",
                             entry.spec().benchmark(), " ", entry.spec().division(), ", round ",
                             entry.spec().round(), ", ", entry.runs_size(), " runs on ",
                             entry.spec().node_count(), " nodes"));
  ASSIGN_OR_RETURN(const ExitStatus status,
                   WaitForEntry(context, client, entry.name(), absl::InfiniteDuration()));
  if (status == ExitStatus::kDone) RETURN_IF_ERROR(PrintCaches(context, client, entry.name()));
  return status;
}

absl::StatusOr<ExitStatus> RunQuickstart(Context* context, const Arguments& arguments) {
  context->env().interrupt->Listen();
  const bool is_kept = arguments.Has("keep");
  const bool is_named =
      context->config().Find("server").has_value() || context->config().Find("socket").has_value();
  const bool has_dev = FileExists(JoinPath(context->env().RuntimeDirectory(), "assayd.sock"));
  std::unique_ptr<DevCoordinator> dev;
  const client::Client* client = nullptr;
  if (is_named || has_dev) {
    ASSIGN_OR_RETURN(client, context->Connect());
    const auto info = client->Call(v1::GetServerInfoRequest(), absl::Seconds(5));
    // A socket that a killed coordinator left behind is no reason to give up.
    if (!info.ok() && (is_named || !absl::IsUnavailable(info.status()))) return info.status();
    if (!info.ok()) client = nullptr;
  }
  if (client == nullptr) {
    context->Note("starting a private coordinator with workers...");
    absl::StatusOr<std::unique_ptr<DevCoordinator>> started =
        DevCoordinator::Start(context, std::min(2, DefaultThreads()),
                              is_kept ? DevLife::kMayBeKept : DevLife::kEndsWithThis);
    if (absl::IsCancelled(started.status())) return ExitStatus::kInterrupted;
    RETURN_IF_ERROR(started.status());
    dev = *std::move(started);
    client = &dev->client();
    context->Note(
        absl::StrCat(context->style().Mark(Tone::kGood), " coordinator ", dev->listen_address()));
  }
  const absl::StatusOr<ExitStatus> status = Run(context, arguments, *client);
  RETURN_IF_ERROR(status.status());
  if (dev != nullptr && is_kept) {
    dev->Detach();
    context->Note("the coordinator goes on; end it with 'assay dev --stop'");
  }
  if (*status == ExitStatus::kDone) {
    ASSIGN_OR_RETURN(const v1::Submission entry, client::GetEntry(*client, "@last"));
    PrintNext(context, entry, dev == nullptr || is_kept);
    if (dev == nullptr || is_kept) PrintLink(context, *client);
  }
  return *status;
}

}  // namespace

std::vector<Command> QuickstartCommands() {
  using Kind = Option::Kind;
  return {{.path = "quickstart",
           .summary = "run a small CosmoFlow from data to score, on this host",
           .description =
               "Uses a running 'assay dev', or starts a private coordinator of its own. The round "
               "cosmoflow-mini is a facility's round: its score is not an MLPerf result.",
           .options = {{.name = "keep", .help = "leave the private coordinator running"},
                       {.name = "data",
                        .kind = Kind::kText,
                        .value = "DIR",
                        .help = "where the dataset is kept (default: ~/.cache/assay)"},
                       {.name = "file",
                        .kind = Kind::kText,
                        .value = "FILE",
                        .help = "another submission file"}},
           .examples = {{"assay quickstart", "about three minutes on two cores"},
                        {"assay quickstart --keep && assay logs @last --events", ""}},
           .run = RunQuickstart}};
}

}  // namespace assay::cli
