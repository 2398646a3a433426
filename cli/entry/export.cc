#include "cli/entry/export.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "cli/command/context.h"
#include "cli/entry/export_power.h"
#include "cli/run/run_bytes.h"
#include "cli/run/run_touch.h"
#include "common/client/artifacts.h"
#include "common/client/export.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/file.h"
#include "common/program_contract.h"
#include "common/source/source_archive.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr char kCachesPrefix[] = "caches_";

class Exporter {
 public:
  Exporter(const Context* context, const client::Client* client, v1::Submission entry,
           std::vector<v1::Run> runs, std::vector<v1::Run> pruned, std::string root)
      : context_(context),
        client_(client),
        entry_(std::move(entry)),
        runs_(std::move(runs)),
        pruned_(std::move(pruned)),
        root_(JoinPath(root, client::OrganizationFolder(entry_))) {}

  absl::Status Write() {
    if (FileExists(results_path()))
      return absl::AlreadyExistsError(absl::StrCat(
          results_path(), " is there already; results are never mixed: export elsewhere"));
    RETURN_IF_ERROR(WriteResults(runs_, results_path()));
    if (!pruned_.empty())
      RETURN_IF_ERROR(WriteResults(pruned_, JoinPath(results_path(), "pruned_results")));
    RETURN_IF_ERROR(WriteDescription());
    if (entry_.is_imported()) return absl::OkStatus();  // its nodes left nothing here
    RETURN_IF_ERROR(WritePower());
    RETURN_IF_ERROR(WriteRecords(client::kPackagedPreflights, {kPreflightPrefix}));
    RETURN_IF_ERROR(
        WriteRecords(client::kPackagedWitness, {kTouchPrefix, kObservedPrefix, kCachesPrefix}));
    RETURN_IF_ERROR(WriteEvaluations());
    return WriteSource();
  }

  const std::string& root() const { return root_; }
  std::string results_path() const { return JoinPath(root_, client::ResultsPath(entry_)); }

 private:
  absl::Status Put(const client::PackageFile& file) {
    constexpr int kReadable = 0644;
    constexpr int kExecutable = 0755;
    const std::string full = JoinPath(root_, file.path);
    RETURN_IF_ERROR(MakeDirectories(full.substr(0, full.rfind('/'))));
    return WriteFileAtomic(full, file.content, file.is_executable ? kExecutable : kReadable);
  }

  // What is said about the entry, beside its results.
  absl::Status WriteDescription() {
    std::optional<Json> description;
    if (!entry_.is_imported()) {
      ASSIGN_OR_RETURN(description, client::NodeDescription(*client_, runs_));
    }
    const bool is_described = description.has_value() || !entry_.system_description_json().empty();
    if (!is_described)
      context_->Note(entry_.is_imported()
                         ? "it came without systems/*.json, so there is none"
                         : "no node describes itself: fill in systems/*.json before handing it in");
    for (const client::PackageFile& file :
         client::DescribingFiles(entry_, runs_, description.value_or(Json::object())))
      RETURN_IF_ERROR(Put(file));
    return absl::OkStatus();
  }

  // power/result_1/node_0.txt of every run, or of none.
  absl::Status WritePower() {
    ASSIGN_OR_RETURN(const PowerLogs power, ReadPowerLogs(*client_, runs_));
    if (!power.why_not.empty())
      context_->Note(absl::StrCat("the package has no power: ", power.why_not));
    for (const auto& [path, text] : power.files)
      RETURN_IF_ERROR(
          Put({JoinPath(client::ResultsPath(entry_), JoinPath("power", path)), text, false}));
    return absl::OkStatus();
  }

  // Where the submission file names it.
  absl::Status WriteSource() {
    const std::string folder =
        JoinPath(JoinPath(root_, client::BenchmarkPath(entry_)), client::kPackagedSource);
    RETURN_IF_ERROR(RemoveTree(folder));  // of another entry of the same program and system
    return FetchSource(*client_, entry_, folder);
  }

  // What the nodes of each run wrote down, by the names of its files:
  // preflight/result_1/preflight_0.json.
  absl::Status WriteRecords(const char* name, const std::vector<absl::string_view>& prefixes) {
    const std::string folder = JoinPath(client::BenchmarkPath(entry_), name);
    RETURN_IF_ERROR(RemoveTree(JoinPath(root_, folder)));  // of another entry
    for (const v1::Run& run : runs_) {
      const std::string of_run = RecordsOf(run, name);
      for (const v1::ArtifactRef& artifact : run.artifacts()) {
        const bool is_wanted =
            std::any_of(prefixes.begin(), prefixes.end(), [&artifact](absl::string_view prefix) {
              return absl::StartsWith(artifact.file_name(), prefix);
            });
        if (!is_wanted) continue;
        ASSIGN_OR_RETURN(std::string json, client::DownloadArtifact(*client_, artifact));
        RETURN_IF_ERROR(Put(
            {JoinPath(of_run, client::PathPart(artifact.file_name())), std::move(json), false}));
      }
    }
    return absl::OkStatus();
  }

  // What the nodes of each run read, as `assay run show --bytes` has it:
  // witness/result_1/bytes.json.
  absl::Status WriteEvaluations() {
    for (const v1::Run& run : runs_) {
      const std::string folder = RecordsOf(run, client::kPackagedWitness);
      ASSIGN_OR_RETURN(const Json bytes, BytesOf(*client_, run));
      if (!bytes.is_null())
        RETURN_IF_ERROR(Put({JoinPath(folder, "bytes.json"), bytes.dump(2) + "\n", false}));
      ASSIGN_OR_RETURN(const Json touches, TouchesOf(*client_, run, absl::UTCTimeZone()));
      if (!touches.empty())
        RETURN_IF_ERROR(Put({JoinPath(folder, "touches.json"), touches.dump(2) + "\n", false}));
    }
    return absl::OkStatus();
  }

  // benchmarks/BENCHMARK/SYSTEM/NAME/result_1
  std::string RecordsOf(const v1::Run& run, const char* name) const {
    const std::string& log = client::ResultFile(run)->file_name();
    return JoinPath(JoinPath(client::BenchmarkPath(entry_), name),
                    client::PathPart(log.substr(0, log.find('.'))));
  }

  absl::Status WriteResults(const std::vector<v1::Run>& runs, const std::string& directory) {
    RETURN_IF_ERROR(MakeDirectories(directory));
    ProgressLine progress(context_);
    for (const v1::Run& run : runs) {
      const v1::ArtifactRef& artifact = *client::ResultFile(run);
      progress.Draw(absl::StrCat("fetching ", artifact.file_name()));
      ASSIGN_OR_RETURN(const std::string log, client::DownloadArtifact(*client_, artifact));
      RETURN_IF_ERROR(
          WriteFileAtomic(JoinPath(directory, client::PathPart(artifact.file_name())), log));
    }
    return absl::OkStatus();
  }

  const Context* const context_;
  const client::Client* const client_;
  const v1::Submission entry_;
  const std::vector<v1::Run> runs_;
  const std::vector<v1::Run> pruned_;
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
  if (entry.has_withdraw_time())
    return absl::FailedPreconditionError(absl::StrCat(client::ShortId(entry.name()), " was ",
                                                      entry.withdraw_reason(),
                                                      "; what is withdrawn is not handed in"));
  ASSIGN_OR_RETURN(const std::vector<v1::Run> all, client::AllRunsOf(*client, entry.name()));
  const std::vector<v1::Run> runs = client::PackagedRuns(entry, all);
  if (runs.empty())
    return absl::FailedPreconditionError(
        absl::StrCat(client::ShortId(entry.name()), " has no run that left a result file"));
  const std::vector<v1::Run> pruned = client::PrunedRuns(entry, all);
  Exporter exporter(context, client, entry, runs, pruned,
                    context->env().AbsolutePath(arguments.Get("DIR")));
  RETURN_IF_ERROR(exporter.Write());
  if (context->printer().IsJson()) {
    RETURN_IF_ERROR(context->printer().Show({.schema = "assay.export/v1",
                                             .value = {{"entry", client::ShortId(entry.name())},
                                                       {"path", exporter.root()},
                                                       {"results", exporter.results_path()},
                                                       {"run_count", runs.size()},
                                                       {"pruned_count", pruned.size()}}}));
  } else {
    context->out() << "exported " << client::ShortId(entry.name()) << ": " << runs.size()
                   << " result files"
                   << (pruned.empty() ? "" : absl::StrCat(" and ", pruned.size(), " pruned ones"))
                   << ", digests checked, to " << exporter.root() << "\n";
  }
  context->Note(absl::StrCat("check it: assay package check --round ", entry.spec().round(), " ",
                             exporter.root()));
  return ExitStatus::kDone;
}

}  // namespace

absl::Status FetchSource(const client::Client& client, const v1::Submission& entry,
                         const std::string& folder) {
  if (!entry.spec().command().has_source()) return absl::OkStatus();
  v1::ArtifactRef archive;
  archive.set_file_name("source.tar");
  archive.set_sha256(entry.spec().command().source().sha256());
  ASSIGN_OR_RETURN(const std::string bytes, client::DownloadArtifact(client, archive));
  const std::string path = absl::StrCat(folder, ".tar");
  RETURN_IF_ERROR(WriteFileAtomic(path, bytes));
  const absl::Status unpacked = UnpackSource(path, folder);
  RETURN_IF_ERROR(RemoveTree(path));
  return unpacked;
}

std::vector<Command> ExportCommands() {
  return {{.path = "entry export",
           .summary = "write an entry as MLPerf's directory layout",
           .description = "DIR/ORG gets systems, results and benchmarks. Logs are byte for byte "
                          "what the runs wrote; each digest is checked.",
           .positionals = {{.name = "ID", .help = "e-42 or @last", .completes = Completes::kEntry},
                           {.name = "DIR",
                            .help = "made if it does not exist",
                            .completes = Completes::kDirectory}},
           .examples = {{"assay entry export e-42 package", ""}},
           .run = RunExport}};
}

}  // namespace assay::cli
