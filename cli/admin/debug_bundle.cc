#include "cli/admin/debug_bundle.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

#include "cli/admin/debug_archive.h"
#include "cli/command/ask_program.h"
#include "cli/command/context.h"
#include "cli/coordinator/doctor.h"
#include "common/client/client.h"
#include "common/client/ids.h"
#include "common/client/json.h"
#include "common/file.h"
#include "common/status.h"

namespace assay::cli {
namespace {

using client::ShortId;

constexpr int kEntriesMax = 200;
constexpr int kRunsMax = 1000;
constexpr int kNodesMax = 1000;
constexpr int32_t kAuditRowsMax = 1000;
constexpr char kLogLinesMax[] = "2000";

std::string Dump(const Json& json) {
  return client::DumpSafely(json, 2) + "\n";
}

// Null for a time that is not set.
Json TimeOf(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0) return nullptr;
  return absl::FormatTime(absl::RFC3339_sec, absl::FromUnixSeconds(time.seconds()),
                          absl::UTCTimeZone());
}

absl::StatusOr<std::string> NodesText(const client::Client& client) {
  v1::ListWorkersRequest request;
  request.set_page_size(kNodesMax);
  ASSIGN_OR_RETURN(const v1::ListWorkersResponse page, client.Call(request));
  Json nodes = Json::array();
  for (const v1::Worker& worker : page.workers())
    nodes.push_back({{"node", ShortId(worker.name())},
                     {"state", v1::Worker::State_Name(worker.state())},
                     {"state_reason", worker.state_reason()},
                     {"run", ShortId(worker.run())},
                     {"allocation", ShortId(worker.allocation())},
                     {"version", worker.version()},
                     {"last_seen_time", TimeOf(worker.last_seen_time())},
                     {"clock_offset_us", worker.clock_offset_us()},
                     {"clock_offset_uncertainty_us", worker.clock_offset_uncertainty_us()},
                     {"certificate_end_time", TimeOf(worker.certificate_end_time())},
                     {"cpu_model", worker.capabilities().cpu_model()},
                     {"core_count", worker.capabilities().core_count()},
                     {"memory_bytes", worker.capabilities().memory_bytes()},
                     {"accelerator_count", worker.capabilities().accelerator_count()}});
  return Dump(nodes);
}

absl::StatusOr<std::string> EntriesText(const client::Client& client) {
  v1::ListSubmissionsRequest request;
  request.set_page_size(kEntriesMax);
  ASSIGN_OR_RETURN(const v1::ListSubmissionsResponse page, client.Call(request));
  Json entries = Json::array();
  for (const v1::Submission& entry : page.submissions())
    entries.push_back({{"entry", ShortId(entry.name())},
                       {"state", v1::Submission::State_Name(entry.state())},
                       {"state_reason", entry.state_reason()},
                       {"round", entry.spec().round()},
                       {"benchmark", entry.spec().benchmark()},
                       {"division", entry.spec().division()},
                       {"node_count", entry.spec().node_count()},
                       {"run_count", entry.runs_size()},
                       {"create_time", TimeOf(entry.create_time())},
                       {"end_time", TimeOf(entry.end_time())},
                       {"preflight_error", entry.preflight_error()}});
  return Dump(entries);
}

absl::StatusOr<std::string> RunsText(const client::Client& client) {
  v1::ListRunsRequest request;
  request.set_page_size(kRunsMax);
  ASSIGN_OR_RETURN(const v1::ListRunsResponse page, client.Call(request));
  Json runs = Json::array();
  for (const v1::Run& run : page.runs()) {
    Json nodes = Json::array();
    for (const std::string& worker : run.workers())
      nodes.push_back(ShortId(worker));
    runs.push_back({{"run", ShortId(run.name())},
                    {"state", v1::Run::State_Name(run.state())},
                    {"state_reason", run.state_reason()},
                    {"nodes", std::move(nodes)},
                    {"create_time", TimeOf(run.create_time())},
                    {"start_time", TimeOf(run.start_time())},
                    {"end_time", TimeOf(run.end_time())}});
  }
  return Dump(runs);
}

absl::StatusOr<std::string> AllocationsText(const client::Client& client) {
  ASSIGN_OR_RETURN(const v1::ListAllocationsResponse page,
                   client.Call(v1::ListAllocationsRequest()));
  Json allocations = Json::array();
  for (const v1::Allocation& allocation : page.allocations())
    allocations.push_back({{"allocation", ShortId(allocation.name())},
                           {"state", v1::Allocation::State_Name(allocation.state())},
                           {"state_reason", allocation.state_reason()},
                           {"launcher", allocation.launcher()},
                           {"node_count", allocation.node_count()},
                           {"entry", ShortId(allocation.submission())},
                           {"failure_count", allocation.failure_count()},
                           {"last_error", allocation.last_error()},
                           {"job", allocation.job()}});
  return Dump(allocations);
}

// The newest rows; bodies and texts stay where they are.
absl::StatusOr<std::string> AuditText(const client::Client& client) {
  v1::ListAuditRequest request;
  request.set_page_size(kAuditRowsMax);
  request.set_newest_first(true);
  ASSIGN_OR_RETURN(const v1::ListAuditResponse page, client.Call(request));
  Json rows = Json::array();
  for (const v1::AuditEntry& row : page.entries())
    rows.push_back({{"seq", row.seq()},
                    {"time", TimeOf(row.time())},
                    {"principal", row.principal()},
                    {"type", row.type()},
                    {"object", ShortId(row.object())},
                    {"outcome", row.outcome()}});
  return Dump(rows);
}

absl::StatusOr<std::string> UsageText(const client::Client& client) {
  ASSIGN_OR_RETURN(const v1::StoreUsage usage, client.Call(v1::GetUsageRequest()));
  Json kinds = Json::array();
  for (const v1::UsageOfKind& kind : usage.kinds())
    kinds.push_back({{"kind", kind.kind()}, {"count", kind.count()}, {"bytes", kind.bytes()}});
  return Dump(
      {{"kinds", std::move(kinds)}, {"bytes", usage.bytes()}, {"free_bytes", usage.free_bytes()}});
}

std::string DoctorText(Context* context) {
  Json checks = Json::array();
  for (const Check& check : Examine(context))
    checks.push_back({{"check", check.name},
                      {"state", check.state},
                      {"detail", check.detail},
                      {"remedy", check.remedy}});
  return Dump(checks);
}

// Gathers files; what cannot be had is said in their place, so that the rest is there all the same.
class Collector {
 public:
  void Add(const std::string& name, absl::StatusOr<std::string> text) {
    if (text.ok())
      files_.push_back({name, *std::move(text)});
    else
      missing_.push_back(absl::StrCat(name, ": ", text.status().message()));
  }
  std::vector<BundleFile> files() && { return std::move(files_); }
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  std::vector<BundleFile> files_;
  std::vector<std::string> missing_;
};

void AddDiagnostics(const v1::Diagnostics& diagnostics, Collector* collector) {
  collector->Add(
      "configuration.textproto",
      absl::StrCat(
          "# Left out: ",
          diagnostics.left_out().empty() ? "nothing" : absl::StrJoin(diagnostics.left_out(), ", "),
          "\n", diagnostics.configuration()));
  Json problems = Json::array();
  for (const std::string& problem : diagnostics.database_problems())
    problems.push_back(problem);
  collector->Add("database.json",
                 Dump({{"schema_version", diagnostics.schema_version()},
                       {"is_quick_check_complete", diagnostics.is_database_checked()},
                       {"problems", std::move(problems)}}));
  if (diagnostics.metrics().empty())
    collector->Add("metrics.txt", absl::NotFoundError("the coordinator has no metrics_address"));
  else
    collector->Add("metrics.txt", diagnostics.metrics());
}

// The daemon's own words, where this host's journal has them and the caller may read it.
absl::StatusOr<std::string> LogText(const Context& context, const client::Client& client) {
  if (!absl::StartsWith(client.endpoint().target, "unix:"))
    return absl::NotFoundError("they are on the coordinator's host: run it there");
  std::vector<std::string> environment;
  if (const std::string path = context.env().Variable("PATH"); !path.empty())
    environment.push_back(absl::StrCat("PATH=", path));
  const std::optional<std::string> text =
      AskProgram({"journalctl", "--unit=assayd", absl::StrCat("--lines=", kLogLinesMax),
                  "--no-pager", "--output=short-iso"},
                 std::move(environment));
  if (!text.has_value())
    return absl::NotFoundError("journalctl --unit=assayd fails; root may read the journal");
  return *text;
}

std::string ReadMe(const std::vector<std::string>& missing, absl::Time now) {
  std::string text = absl::StrCat(
      "What 'assay admin debug-bundle' has found at ", absl::FormatTime(now, absl::UTCTimeZone()),
      ".\n\n"
      "Left out: tokens and private keys, values of the configuration that may be secret\n"
      "(configuration.textproto names them), bodies of the audit, logs of runs, hyperparameters\n"
      "and scores. In it: names of nodes and of people (audit.json), reasons of failures, and the\n"
      "daemon's log, which says what it says. Read it before you send it.\n");
  if (!missing.empty()) absl::StrAppend(&text, "\nCould not be had:\n");
  for (const std::string& line : missing)
    absl::StrAppend(&text, "  ", line, "\n");
  return text;
}

absl::StatusOr<std::vector<BundleFile>> Collect(Context* context, const client::Client& client) {
  ASSIGN_OR_RETURN(const v1::ServerInfo info, client.Call(v1::GetServerInfoRequest()));
  // The first question that only an operator may ask.
  v1::GetDiagnosticsRequest request;
  request.set_is_database_checked(true);
  ASSIGN_OR_RETURN(const v1::Diagnostics diagnostics, client.Call(request, absl::Minutes(5)));
  Collector collector;
  collector.Add("version.json", Dump({{"version", info.version()},
                                      {"start_time", TimeOf(info.start_time())},
                                      {"time", TimeOf(info.current_time())},
                                      {"event_seq", info.event_seq()},
                                      {"entry_count", info.submission_count()},
                                      {"node_count", info.worker_count()}}));
  AddDiagnostics(diagnostics, &collector);
  collector.Add("doctor.json", DoctorText(context));
  collector.Add("usage.json", UsageText(client));
  collector.Add("nodes.json", NodesText(client));
  collector.Add("entries.json", EntriesText(client));
  collector.Add("runs.json", RunsText(client));
  collector.Add("allocations.json", AllocationsText(client));
  collector.Add("audit.json", AuditText(client));
  collector.Add("assayd.log", LogText(*context, client));
  collector.Add("README.txt", ReadMe(collector.missing(), context->env().clock->Wall()));
  return std::move(collector).files();
}

absl::StatusOr<ExitStatus> RunDebugBundle(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  const absl::Time now = context->env().clock->Wall();
  const std::string folder =
      absl::StrCat("assay-debug-", absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone()));
  const std::string given = arguments.Get("FILE");
  const std::string path =
      context->env().AbsolutePath(given.empty() ? absl::StrCat(folder, ".tar.zst") : given);
  ASSIGN_OR_RETURN(const std::vector<BundleFile> files, Collect(context, *client));
  RETURN_IF_ERROR(WriteBundle(path, folder, files, now));
  ListView view{.schema = "assay.debug_bundle/v1",
                .columns = {{"FILE", "file"}, {"SIZE", "bytes", Format::kBytes}},
                .more = {{"path", path}}};
  for (const BundleFile& file : files)
    view.items.push_back(
        {{"file", JoinPath(folder, file.name)}, {"bytes", WithoutSecrets(file.text).size()}});
  RETURN_IF_ERROR(context->printer().List(view));
  context->Note(
      absl::StrCat("written to ", path, "; read it before you send it: tar --zstd -xf ", path));
  return ExitStatus::kDone;
}

}  // namespace

std::vector<Command> DebugBundleCommands() {
  return {
      {.path = "admin debug-bundle",
       .summary = "gather what helps others to find out what is wrong, without secrets",
       .description =
           "One .tar.zst, readable by you alone: version, the coordinator's configuration without "
           "what may be secret, the doctor's findings, the metrics page, states of nodes, the "
           "newest entries, runs and allocations, the audit's last rows without their bodies, disk "
           "usage, schema version and SQLite's quick_check, and on the coordinator's host the last "
           "lines of its log (as root, who may read the journal). Tokens and private keys are left "
           "out wherever they stand. An existing file is not overwritten.",
       .positionals = {{.name = "FILE",
                        .help = "to write; assay-debug-TIME.tar.zst if it is not given",
                        .is_required = false,
                        .completes = Completes::kFile}},
       .examples = {{"assay admin debug-bundle", ""},
                    {"assay admin debug-bundle /tmp/assay.tar.zst", ""},
                    {"assay admin debug-bundle --json", "the listing as JSON"}},
       .run = RunDebugBundle}};
}

}  // namespace assay::cli
