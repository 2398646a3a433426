#include "cli/entry/import.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "cli/command/context.h"
#include "cli/entry/publish.h"
#include "cli/rules/hyperparameters.h"
#include "cli/rules/rule_sets.h"
#include "cli/terminal/resource_columns.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/client/stubs.h"
#include "common/package/seeds.h"
#include "common/rpc/channel.h"
#include "common/rpc/finding_proto.h"
#include "common/rpc/status_grpc.h"
#include "common/rules/reference_values.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr absl::Duration kImportTimeout = absl::Minutes(5);
constexpr int64_t kImportedEntriesMax = 100'000;
// What the coordinator takes of a file in one message, of findings of one log, and as a message.
constexpr size_t kPieceBytes = 64 << 10;
constexpr int kFindingsMax = 1000;
constexpr size_t kHeaderBytesMax = 1 << 20;
constexpr size_t kDescriptionBytesMax = 256 << 10;

std::optional<int64_t> WholeNumber(const std::optional<JsonValue>& value) {
  return value.has_value() ? value->AsInt64() : std::nullopt;
}

void SetFacts(const rules::CheckResult& result, v1::Run* run) {
  const rules::Facts& facts = result.facts;
  run->set_state(v1::Run::SUCCEEDED);
  run->set_is_compliant(result.pass);
  run->set_is_converged(facts.reached_target);
  if (facts.run_start_ms) run->set_run_start_ms(std::llround(*facts.run_start_ms));
  if (facts.run_stop_ms) run->set_run_stop_ms(std::llround(*facts.run_stop_ms));
  if (facts.quality) run->set_quality(*facts.quality);
  run->set_epoch_count(facts.epochs);
  if (facts.staging_ms) run->set_staging_ms(std::llround(*facts.staging_ms));
  if (const auto size = WholeNumber(facts.global_batch_size); size.has_value())
    run->set_global_batch_size(*size);
  run->set_instance_scale(rules::InstanceScale(facts).value_or(0));
  for (const rules::Finding& finding : result.findings)
    *run->add_findings() = FindingToProto(finding);
}

int32_t NodeCount(const package::JudgedFolder& judged) {
  for (const package::JudgedRun& run : judged.runs)
    if (const auto nodes = WholeNumber(run.result.facts.number_of_nodes);
        nodes.has_value() && *nodes > 0 && *nodes < INT32_MAX)
      return static_cast<int32_t>(*nodes);
  int32_t nodes = 0;
  const std::string described =
      package::MemberText(judged.folder.system_description, "number_of_nodes");
  return absl::SimpleAtoi(described, &nodes) ? nodes : 0;
}

// What a person should know about the tree beside the logs, as warnings of the entry.
v1::Finding Oddity(const std::string& text) {
  v1::Finding finding;
  finding.set_rule("R-PKG-001");
  finding.set_severity(v1::Finding::WARNING);
  finding.set_error_class("package");
  finding.set_found(text);
  return finding;
}

// Equal or missing seeds, told once. Warnings: history is scored as it was.
void AddSeedFindings(const package::JudgedFolder& judged, v1::ImportHeader* header) {
  package::SeedCheck seeds;
  for (const package::JudgedRun& run : judged.runs)
    seeds.AddLog(run.file_name, run.log);
  for (const package::SeedFinding& seed :
       seeds.OfSet(judged.division() == "closed", judged.folder.scaling == "weak")) {
    v1::Finding* finding = header->add_findings();
    *finding = FindingToProto(seed.finding);
    finding->set_severity(v1::Finding::WARNING);
    finding->set_found(absl::StrCat(seed.file, ": ", finding->found()));
  }
}

struct Tally {
  int imported = 0;
  int known = 0;
  int failed = 0;
};

absl::StatusOr<std::set<std::string>> KnownSources(const client::Client& client,
                                                   const std::string& round) {
  v1::ListSubmissionsRequest request;
  request.set_round(round);
  ASSIGN_OR_RETURN(const std::vector<v1::Submission> entries,
                   client::ListEntries(client, request, kImportedEntriesMax));
  std::set<std::string> sources;
  for (const v1::Submission& entry : entries)
    if (entry.is_imported()) sources.insert(entry.source_path());
  return sources;
}

// Blocks until the coordinator has filed the entry.
absl::StatusOr<v1::Submission> Send(const client::Client& client, const Import& entry) {
  grpc::ClientContext context;
  PrepareCall(client.endpoint(), kImportTimeout, &context);
  v1::Submission filed;
  const auto writer = client.stubs().submissions->ImportSubmission(&context, &filed);
  v1::ImportSubmissionRequest message;
  *message.mutable_header() = entry.header;
  // Once a message is not taken the coordinator has ended the call, and Finish says why.
  bool is_open = writer->Write(message);
  for (const Import::Run& run : entry.runs) {
    *message.mutable_run() = run.header;
    is_open = is_open && writer->Write(message);
    for (size_t begin = 0; is_open && begin < run.log.size(); begin += kPieceBytes) {
      message.set_log(run.log.substr(begin, kPieceBytes));
      is_open = writer->Write(message);
    }
  }
  message.Clear();  // the end: without it a client that was killed would look like one that is done
  if (is_open && writer->Write(message)) writer->WritesDone();
  const grpc::Status status = writer->Finish();
  if (!status.ok()) return client.Explain(FromGrpc(status));
  return filed;
}

// Leaves out the last findings of a log that has more than a message can hold: the coordinator,
// which judges again, has them all.
void Shorten(v1::ImportedRun* run) {
  google::protobuf::RepeatedPtrField<v1::Finding>* findings =
      run->mutable_judged()->mutable_findings();
  while (findings->size() > kFindingsMax ||
         (!findings->empty() && run->ByteSizeLong() > kHeaderBytesMax))
    findings->RemoveLast();
}

absl::StatusOr<v1::Submission> ImportFolder(const client::Client& client,
                                            const package::ResultFolder& folder,
                                            const rules::RuleSet& rule_set,
                                            std::optional<absl::Time> published) {
  ASSIGN_OR_RETURN(package::JudgedFolder judged, package::JudgeFolder(folder, rule_set));
  Import entry = ImportFor(std::move(judged), rule_set.name());
  // What the first run says of itself; all runs of an entry use the same.
  if (!entry.runs.empty())
    SetHyperparameters(rules::LoggedHyperparameters(entry.runs[0].log, rule_set, folder.benchmark),
                       entry.header.mutable_spec());
  if (published.has_value())
    entry.header.mutable_publish_time()->set_seconds(absl::ToUnixSeconds(*published));
  return Send(client, entry);
}

absl::StatusOr<ExitStatus> RunImport(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const RuleSetRef rule_set, LoadRuleSet(context->env(), arguments.Get("round")));
  ASSIGN_OR_RETURN(const std::vector<package::ResultFolder> folders,
                   package::FindResultFolders(context->env().AbsolutePath(arguments.Get("DIR"))));
  if (folders.empty())
    return absl::NotFoundError(
        absl::StrCat(arguments.Get("DIR"), " holds no result_*.txt files, at any depth"));
  std::optional<absl::Time> published;
  if (arguments.Has("published")) {
    ASSIGN_OR_RETURN(published, ParseMoment("--published", arguments.Get("published")));
  }
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const std::set<std::string> known, KnownSources(*client, rule_set->name()));
  ListView view{.schema = "assay.entry/v1", .columns = EntryColumns()};
  Tally tally;
  ProgressLine progress(context);
  for (size_t i = 0; i < folders.size(); ++i) {
    const package::ResultFolder& folder = folders[i];
    constexpr int kBarWidth = 20;
    progress.Draw(
        absl::StrCat(ProgressBar(static_cast<int64_t>(i), static_cast<int64_t>(folders.size()),
                                 kBarWidth, context->style().is_utf8()),
                     " ", i + 1, "/", folders.size(), "  ", folder.source_path));
    if (known.count(folder.source_path) > 0) {
      ++tally.known;
      continue;
    }
    const absl::StatusOr<v1::Submission> entry =
        ImportFolder(*client, folder, *rule_set, published);
    if (entry.ok()) {
      ++tally.imported;
      view.items.push_back(client::EntryJson(*entry));
      continue;
    }
    // Without a coordinator or the right to import nothing else will work either.
    if (absl::IsUnavailable(entry.status()) || absl::IsPermissionDenied(entry.status()) ||
        absl::IsUnauthenticated(entry.status()))
      return entry.status();
    ++tally.failed;
    progress.Clear();
    context->Warn(absl::StrCat(folder.source_path, ": ", std::string(entry.status().message())));
  }
  progress.Clear();
  if (!view.items.empty() || context->printer().IsStructured())
    RETURN_IF_ERROR(context->printer().List(view));
  context->Note(absl::StrCat(tally.imported, " imported, ", tally.known, " were there already, ",
                             tally.failed, " refused; next: assay score --round ",
                             arguments.Get("round")));
  return tally.failed == 0 ? ExitStatus::kDone : ExitStatus::kFailed;
}

}  // namespace

Import ImportFor(package::JudgedFolder judged, const std::string& round) {
  Import entry;
  v1::ImportHeader& header = entry.header;
  header.set_round(round);
  header.set_source_path(judged.folder.source_path);
  header.set_scaling(judged.folder.scaling);
  header.set_pruned_count(static_cast<int32_t>(judged.folder.pruned_files.size()));
  if (judged.folder.system_json.size() <= kDescriptionBytesMax)
    header.set_system_description_json(judged.folder.system_json);
  else
    *header.add_findings() = Oddity("the system description is too large to be kept");
  v1::SubmissionSpec* spec = header.mutable_spec();
  spec->set_organization(judged.folder.organization);
  spec->set_system(judged.folder.system);
  spec->set_benchmark(judged.folder.benchmark);
  spec->set_division(judged.division());
  spec->set_round(round);
  spec->set_node_count(NodeCount(judged));
  spec->set_run_count(static_cast<int32_t>(judged.runs.size()));
  if (!judged.runs.empty()) {
    spec->set_status(judged.runs.front().result.facts.submission_status);
    header.set_rules_digest(judged.runs.front().result.digest);
  }
  if (judged.score.minutes.has_value()) header.set_score_minutes(*judged.score.minutes);
  for (const std::string& oddity : judged.folder.oddities)
    *header.add_findings() = Oddity(oddity);
  AddSeedFindings(judged, &header);
  int number = 0;
  for (package::JudgedRun& run : judged.runs) {
    Import::Run& imported = entry.runs.emplace_back();
    imported.header.set_file_name(run.file_name);
    imported.header.set_sha256(run.sha256);
    imported.header.set_size_bytes(std::ssize(run.log));
    imported.header.mutable_judged()->set_number(++number);
    SetFacts(run.result, imported.header.mutable_judged());
    Shorten(&imported.header);
    imported.log = std::move(run.log);
  }
  return entry;
}

std::vector<Command> ImportCommands() {
  return {{.path = "import",
           .summary = "read published results into the coordinator",
           .description = "Finds every ORG/results/SYSTEM[/strong|weak]/BENCHMARK below DIR, "
                          "judges and scores it, and stores it with its logs as read-only "
                          "history, with its system's description, which anybody may see. Can be "
                          "repeated: what is there already is left alone. For operators.",
           .positionals = {{.name = "DIR",
                            .help = "a results repository, or one organisation of it",
                            .completes = Completes::kDirectory}},
           .options = {{.name = "round",
                        .kind = Option::Kind::kText,
                        .value = "ROUND",
                        .help = "v0.7 or v1.0",
                        .is_required = true,
                        .completes = Completes::kRound},
                       {.name = "published",
                        .kind = Option::Kind::kText,
                        .value = "DATE",
                        .help = "when the round was or will be published: 2020-11-18, or a moment; "
                                "else it is published now"}},
           .examples = {{"assay import hpc_results_v0.7 --round v0.7 --published 2020-11-18", ""}},
           .run = RunImport}};
}

}  // namespace assay::cli
