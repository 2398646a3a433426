#include "cli/entry/submit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "cli/entry/entry.h"
#include "cli/entry/follow.h"
#include "cli/entry/plan_estimate.h"
#include "cli/entry/score.h"
#include "cli/entry/workload_table.h"
#include "cli/rules/hyperparameters.h"
#include "cli/rules/rule_sets.h"
#include "cli/terminal/resource_columns.h"
#include "common/client/artifacts.h"
#include "common/client/ids.h"
#include "common/client/json.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/file.h"
#include "common/secret.h"
#include "common/status.h"
#include "common/toml.h"

namespace assay::cli {

void PrintDiagnostics(const Context& context, const SubmissionFile& file,
                      const std::vector<Diagnostic>& diagnostics) {
  std::ostream* const out = context.env().err;
  for (const Diagnostic& diagnostic : diagnostics)
    *out << FormatDiagnostic(file, diagnostic);
  const auto errors =
      std::count_if(diagnostics.begin(), diagnostics.end(),
                    [](const Diagnostic& d) { return d.severity == Diagnostic::Severity::kError; });
  const auto warnings = static_cast<ptrdiff_t>(diagnostics.size()) - errors;
  if (diagnostics.empty() || context.is_quiet()) return;
  *out << errors << (errors == 1 ? " error, " : " errors, ") << warnings
       << (warnings == 1 ? " warning\n" : " warnings\n");
}

namespace {

std::vector<Diagnostic> DiagnosticsFor(const SubmissionFile& file,
                                       const v1::PlanSubmissionResponse& plan) {
  std::vector<Diagnostic> diagnostics;
  for (const v1::Finding& finding : plan.findings())
    diagnostics.push_back(DiagnosticFor(file, finding));
  return diagnostics;
}

bool HasError(const v1::PlanSubmissionResponse& plan) {
  return std::any_of(plan.findings().begin(), plan.findings().end(),
                     [](const v1::Finding& f) { return f.severity() != v1::Finding::WARNING; });
}

absl::StatusOr<v1::PlanSubmissionResponse> Plan(const client::Client& client,
                                                const SubmissionFile& file) {
  v1::PlanSubmissionRequest request;
  *request.mutable_spec() = file.spec;
  return client.CallRetrying(request);
}

std::string NodesLine(const v1::PlanSubmissionResponse& plan) {
  const v1::SubmissionSpec& spec = plan.spec();
  // The instances of a throughput set run side by side.
  const int64_t need =
      int64_t{spec.node_count()} * (spec.metric() == "throughput" ? spec.run_count() : 1);
  std::string line = absl::StrCat(need, " needed, ", plan.worker_count_matching(), " match, ",
                                  plan.worker_count_free(), " free");
  if (!plan.launcher().empty()) {
    const std::string& profile = spec.fleet();
    absl::StrAppend(&line, ": launcher ", plan.launcher(),
                    profile.empty() ? "" : absl::StrCat(", profile ", profile, ","),
                    " would be asked for them, for ", plan.lease().seconds() / 60, " min");
  } else if (plan.worker_count_matching() < need) {
    absl::StrAppend(&line, ": it would wait until there are so many");
  } else if (plan.worker_count_free() < need) {
    absl::StrAppend(&line, ": it would wait");
  }
  return line;
}

Json PlanJson(const SubmissionFile& file, const v1::PlanSubmissionResponse& plan) {
  v1::Submission entry;
  *entry.mutable_spec() = plan.spec();
  const Json spec = client::EntryJson(entry);
  Json json = {{"is_accepted", !HasError(plan)}, {"file", file.path}};
  for (const char* field : {"round", "benchmark", "division", "organization", "system", "dataset",
                            "nodes", "ranks_per_node", "backend", "status", "hyperparameters"})
    if (spec.contains(field)) json[field] = spec[field];
  json["run_count"] = plan.spec().run_count();
  json["nodes_matching"] = plan.worker_count_matching();
  json["nodes_free"] = plan.worker_count_free();
  json["node_summary"] = NodesLine(plan);
  json["runs_ahead"] = plan.run_count_ahead();
  json["quality_target"] = plan.quality_target();
  json["is_mlperf_result"] = plan.is_mlperf_result();
  if (!plan.round_label().empty()) json["round_label"] = plan.round_label();
  json["rules_digest"] = plan.rules_digest();
  json["findings"] = Json::array();
  for (const v1::Finding& finding : plan.findings()) {
    Json item = client::FindingJson(finding);
    const Diagnostic diagnostic = DiagnosticFor(file, finding);
    if (diagnostic.at.line > 0) {
      item["line"] = diagnostic.at.line;
      item["column"] = diagnostic.at.column;
    }
    json["findings"].push_back(item);
  }
  return json;
}

// The submission's hyperparameters beside the reference's; nothing where this program does not know
// the round.
void AddHyperparameterDiff(const Environment& environment, const v1::SubmissionSpec& spec,
                           Json* json) {
  const absl::StatusOr<RuleSetRef> rules = LoadRuleSet(environment, spec.round());
  if (!rules.ok()) return;
  (*json)["hyperparameter_diff"] =
      HyperparameterRows(**rules, spec.benchmark(), spec.division(), HyperparametersOf(spec));
}

// What it would take. A plan without that is still one.
Json EstimateFor(const client::Client& client, const v1::SubmissionSpec& spec) {
  const absl::StatusOr<std::vector<EarlierRun>> earlier = FindEarlierRuns(client, spec);
  if (earlier.ok()) return EstimateJson(spec, *earlier);
  return {{"summary", absl::StrCat("unknown: ", std::string(earlier.status().message()))}};
}

// Whether it would wait for nodes that are not there.
bool IsShortOfNodes(const v1::PlanSubmissionResponse& plan) {
  return std::any_of(plan.findings().begin(), plan.findings().end(),
                     [](const v1::Finding& f) { return f.rule() == "R-SPC-006"; });
}

absl::StatusOr<ExitStatus> RunPlan(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const SubmissionFile file, LoadSubmissionFile(*context, arguments.Get("FILE")));
  if (!file.problems.empty()) {
    PrintDiagnostics(*context, file, file.problems);
    return ExitStatus::kUsage;
  }
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::PlanSubmissionResponse plan, Plan(*client, file));
  Json value = PlanJson(file, plan);
  AddHyperparameterDiff(context->env(), plan.spec(), &value);
  value["estimate"] = EstimateFor(*client, plan.spec());
  RETURN_IF_ERROR(
      context->printer().Show({.schema = "assay.plan/v1",
                               .value = std::move(value),
                               .fields = {{"benchmark", "benchmark"},
                                          {"division", "division"},
                                          {"round", "round"},
                                          {"", "round_label"},
                                          {"quality target", "quality_target"},
                                          {"nodes", "node_summary"},
                                          {"runs", "run_count"},
                                          {"runs ahead", "runs_ahead"},
                                          {"estimate", "estimate.summary"},
                                          {"MLPerf result", "is_mlperf_result", Format::kYesNo},
                                          {"rules", "rules_digest", Format::kDigest}},
                               .sections = {{"Hyperparameters", "hyperparameter_diff",
                                             HyperparameterColumns(/*has_values=*/true)}}}));
  if (!context->printer().IsJson()) PrintDiagnostics(*context, file, DiagnosticsFor(file, plan));
  if (HasError(plan)) return ExitStatus::kRuleViolation;
  if (!IsShortOfNodes(plan))
    context->Note(absl::StrCat("next: assay submit ", file.path, " --wait"));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunSubmit(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const absl::Duration timeout,
                   arguments.Duration("timeout", absl::InfiniteDuration()));
  ASSIGN_OR_RETURN(const SubmissionFile file, LoadSubmissionFile(*context, arguments.Get("FILE")));
  if (!file.problems.empty()) {
    PrintDiagnostics(*context, file, file.problems);
    return ExitStatus::kUsage;
  }
  const bool waits = arguments.Has("wait");
  if (waits) context->env().interrupt->Listen();
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::Submission entry, SubmitFile(context, *client, file));
  if (entry.name().empty()) return ExitStatus::kRuleViolation;
  const std::string id = client::ShortId(entry.name());
  if (context->printer().IsJson()) {
    if (!waits)
      RETURN_IF_ERROR(
          context->printer().Show({.schema = "assay.entry/v1", .value = client::EntryJson(entry)}));
  } else {
    context->out() << "submitted " << id << " (set "
                   << client::RawText(client::EntryJson(entry)["set"]) << ", " << entry.runs_size()
                   << " runs)\n"
                   << std::flush;
  }
  if (waits) return WaitForEntry(context, *client, entry.name(), timeout);
  context->Note(absl::StrCat("follow: assay wait ", id));
  return ExitStatus::kDone;
}

ExitStatus OutcomeOf(const v1::Submission& entry) {
  if (!client::IsEnded(entry.state())) return ExitStatus::kStillRunning;
  return entry.state() == v1::Submission::VALID ? ExitStatus::kDone : ExitStatus::kFailed;
}

absl::StatusOr<ExitStatus> RunStatus(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::Submission entry, client::GetEntry(*client, arguments.Get("ID")));
  ASSIGN_OR_RETURN(const std::vector<v1::Run> runs, client::AllRunsOf(*client, entry.name()));
  ShowView view{.schema = "assay.entry/v1",
                .value = client::EntryJson(entry),
                .fields = {{"entry", "id"},
                           {"state", "state", Format::kState},
                           {"reason", "state_reason"},
                           {"benchmark", "benchmark"},
                           {"round", "round"},
                           {"score", "score_minutes", Format::kMinutes}},
                .sections = {{"Runs", "run_details", RunColumns()}}};
  view.value["run_details"] = Json::array();
  for (const v1::Run& run : runs)
    view.value["run_details"].push_back(client::RunJson(run));
  RETURN_IF_ERROR(context->printer().Show(view));
  return arguments.Has("exit-code") ? OutcomeOf(entry) : ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunWhy(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  v1::ExplainSubmissionRequest request;
  ASSIGN_OR_RETURN(*request.mutable_name(), client::EntryName(*client, arguments.Get("ID")));
  ASSIGN_OR_RETURN(const v1::ExplainSubmissionResponse answer, client->Call(request));
  Json json = {{"id", client::ShortId(request.name())},
               {"reason", answer.reason()},
               {"explanation", answer.explanation()}};
  if (!answer.remedy().empty()) json["remedy"] = answer.remedy();
  if (answer.has_since_time()) json["since"] = client::TimeText(answer.since_time());
  if (answer.queue_position() > 0) json["queue_position"] = answer.queue_position();
  if (context->printer().IsStructured()) {
    RETURN_IF_ERROR(context->printer().Show({.schema = "assay.why/v1",
                                             .value = json,
                                             .fields = {{"entry", "id"},
                                                        {"reason", "reason"},
                                                        {"explanation", "explanation"},
                                                        {"remedy", "remedy"},
                                                        {"since", "since"},
                                                        {"position", "queue_position"}}}));
    return ExitStatus::kDone;
  }
  context->out() << context->style().Paint(answer.reason(), Tone::kStrong) << ": "
                 << answer.explanation();
  const bool is_waiting = answer.reason() != "RUNNING" && answer.reason() != "ENDED";
  if (is_waiting && answer.queue_position() > 0)
    context->out() << " (position " << answer.queue_position() << ")";
  context->out() << "\n";
  if (answer.has_since_time())
    context->out() << "since "
                   << context->printer().FormatField(client::TimeText(answer.since_time()),
                                                     Format::kTime)
                   << "\n";
  if (!answer.remedy().empty()) context->out() << "to change that: " << answer.remedy() << "\n";
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunCancel(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  v1::CancelSubmissionRequest request;
  request.set_request_id(MakeUuid());
  request.set_reason(arguments.Get("reason"));
  ASSIGN_OR_RETURN(*request.mutable_name(), client::EntryName(*client, arguments.Get("ID")));
  ASSIGN_OR_RETURN(const v1::Submission entry, client->CallRetrying(request));
  const std::string id = client::ShortId(entry.name());
  RETURN_IF_ERROR(ShowChanged(
      context, entry,
      absl::StrCat("cancelled ", id, ": queued runs have ended, running ones are being stopped"),
      absl::StrCat("see: assay entry show ", id)));
  return ExitStatus::kDone;
}

}  // namespace

absl::StatusOr<SubmissionFile> LoadSubmissionFile(const Context& context, const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(context.env().AbsolutePath(path), kTomlBytesMax);
  if (!text.ok())
    return absl::Status(text.status().code(),
                        absl::StrCat("cannot read the submission file ", path, ": ",
                                     std::string(text.status().message())));
  SubmissionFile file = ParseSubmissionFile(*text, path);
  const std::string absolute = context.env().AbsolutePath(path);
  const std::string directory = absolute.substr(0, absolute.rfind('/') + 1);
  PackSourceOf(directory, &file);
  FindImageOf(context, directory, &file);
  return file;
}

absl::StatusOr<v1::Submission> SubmitFile(Context* context, const client::Client& client,
                                          const SubmissionFile& file) {
  ASSIGN_OR_RETURN(const v1::PlanSubmissionResponse plan, Plan(client, file));
  PrintDiagnostics(*context, file, DiagnosticsFor(file, plan));
  if (HasError(plan)) return v1::Submission();
  v1::CreateSubmissionRequest request;
  request.set_request_id(MakeUuid());
  *request.mutable_spec() = file.spec;
  if (!file.source.empty()) return client::SubmitWithSource(client, request, file.source);
  return client.CallRetrying(request);
}

std::vector<Command> SubmitCommands() {
  const Positional file = {
      .name = "FILE", .help = "submission file (TOML)", .completes = Completes::kFile};
  const Positional id = {
      .name = "ID", .help = "e-42, s-42 or @last", .completes = Completes::kEntry};
  const Option timeout = {.name = "timeout",
                          .kind = Option::Kind::kDuration,
                          .value = "DURATION",
                          .help = "give up waiting after it (exit 7)"};
  const Option reason = {.name = "reason",
                         .kind = Option::Kind::kText,
                         .value = "TEXT",
                         .help = "why, for the record"};
  return {{.path = "plan",
           .summary = "what submitting a file would do, without doing it",
           .description = "Shows what the rules say about the file, with line and column, what "
                          "defaults would be filled in, what the runs would wait for, and how long "
                          "they would take by those of the same kind that have ended here. What "
                          "submitting would refuse, this says.",
           .positionals = {file},
           .examples = {{"assay plan cosmoflow.toml", "exit 3 if a rule would refuse it"}},
           .run = RunPlan},
          {.path = "entry create",
           .summary = "submit an entry and do not wait for it: 'submit' without --wait",
           .description = "Safe to repeat when the connection breaks: one call makes one entry.",
           .positionals = {file},
           .examples = {{"assay entry create cosmoflow.toml", ""},
                        {"assay entry create cosmoflow.toml -o tpl={id}", "its id alone"}},
           .run = RunSubmit},
          {.path = "submit",
           .summary = "submit an entry",
           .description = "Safe to repeat when the connection breaks: one call makes one entry.",
           .positionals = {file},
           .options = {{.name = "wait", .letter = 'w', .help = "follow until the score is known"},
                       timeout},
           .examples = {{"assay submit cosmoflow.toml", ""},
                        {"assay submit cosmoflow.toml --wait --timeout 2h",
                         "Ctrl-C detaches; the runs go on"}},
           .run = RunSubmit},
          {.path = "status",
           .summary = "how far an entry is",
           .positionals =
               {{.name = "ID", .help = id.help, .is_required = false, .completes = id.completes}},
           .options = {{.name = "exit-code",
                        .help = "exit 9 while it runs, 0 if it is valid, 1 if not"}},
           .examples = {{"assay status", "of the newest entry"},
                        {"assay status e-42 --exit-code", "for scripts"}},
           .run = RunStatus},
          {.path = "why",
           .summary = "why an entry waits",
           .positionals =
               {{.name = "ID", .help = id.help, .is_required = false, .completes = id.completes}},
           .examples = {{"assay why e-42", ""}},
           .run = RunWhy},
          {.path = "cancel",
           .summary = "end an entry: queued runs at once, running ones are stopped",
           .positionals = {id},
           .options = {reason},
           .examples = {{"assay cancel e-42 --reason 'wrong dataset'", ""}},
           .run = RunCancel}};
}

}  // namespace assay::cli
