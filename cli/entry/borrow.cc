#include "cli/entry/borrow.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"

#include "cli/command/context.h"
#include "cli/entry/export.h"
#include "cli/rules/hyperparameters.h"
#include "cli/rules/rule_sets.h"
#include "common/client/export.h"
#include "common/client/ids.h"
#include "common/client/json.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/file.h"
#include "common/json_reader.h"
#include "common/rpc/finding_proto.h"
#include "common/status.h"

namespace assay::cli {
namespace {

// KEY=VALUE, a batch size; the value is JSON.
absl::Status SetBatchSize(const std::string& text, rules::Hyperparameters* values) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  if (!rules::IsBatchSize(parts.first))
    return absl::InvalidArgumentError(
        absl::StrCat("--set ", text, ": only global_batch_size, local_batch_size and ",
                     "batchnorm_group_size may be your own when borrowing"));
  JsonResult value = ParseJson(parts.second);
  if (value.error != JsonError::kNone || !value.value.AsInt64() || *value.value.AsInt64() < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("--set ", text, ": write it as ", parts.first, "=256"));
  values->insert_or_assign(parts.first, std::move(value.value));
  return absl::OkStatus();
}

// The borrower's entry with the borrowed hyperparameters.
v1::SubmissionSpec Proposed(const v1::Submission& own, const v1::Submission& lender,
                            const rules::Hyperparameters& values) {
  v1::SubmissionSpec spec = own.spec();
  SetHyperparameters(values, &spec);
  spec.mutable_borrowing()->set_own_entry(own.name());
  spec.mutable_borrowing()->set_lender_entry(lender.name());
  return spec;
}

Json BorrowingJson(const v1::Submission& own, const v1::Submission& lender,
                   const rules::Hyperparameters& values,
                   const std::vector<rules::Finding>& findings) {
  Json json = {{"entry", client::ShortId(own.name())},
               {"created", client::TimeText(own.create_time())},
               {"organization", own.spec().organization()},
               {"lender", client::ShortId(lender.name())},
               {"lender_organization", lender.spec().organization()},
               {"lender_system", lender.spec().system()},
               {"lender_created", client::TimeText(lender.create_time())}};
  json["is_allowed"] = std::none_of(findings.begin(), findings.end(), [](const rules::Finding& f) {
    return f.severity == rules::Severity::kError;
  });
  json["values"] = Json::array();
  for (const rules::BorrowedValue& value : rules::CompareBorrowing(
           HyperparametersOf(own.spec()), HyperparametersOf(lender.spec()), values)) {
    Json row = {{"key", value.key}};
    if (value.own) row["own"] = ToPrintable(*value.own);
    if (value.lender) row["lender"] = ToPrintable(*value.lender);
    if (value.proposed) row["borrowed"] = ToPrintable(*value.proposed);
    row["standing"] = value.standing;
    json["values"].push_back(std::move(row));
  }
  json["findings"] = Json::array();
  for (const rules::Finding& finding : findings)
    json["findings"].push_back(client::FindingJson(FindingToProto(finding)));
  return json;
}

std::vector<rules::Finding> Judge(const Context& context, const v1::Submission& own,
                                  const v1::Submission& lender,
                                  const v1::SubmissionSpec& proposed) {
  std::vector<rules::Finding> findings = rules::CheckBorrowing(
      BorrowingEntryOf(own.spec()), BorrowingEntryOf(lender.spec()), BorrowingEntryOf(proposed));
  const absl::StatusOr<RuleSetRef> rules = LoadRuleSet(context.env(), proposed.round());
  if (!rules.ok()) return findings;
  for (rules::Finding& finding : rules::CheckHyperparameters(
           **rules, proposed.benchmark(), proposed.division(), HyperparametersOf(proposed)))
    findings.push_back(std::move(finding));
  return findings;
}

// What changes, for those who read the submission file; the coordinator keeps a record of its own.
std::string RecordOf(const Context& context, const Json& borrowing) {
  const auto text = [&](const char* field) { return client::RawText(borrowing[field]); };
  std::string record = absl::StrCat(
      "# Hyperparameters borrowed from ", text("lender"), " (", text("lender_organization"), ", ",
      text("lender_system"), ", submitted ", text("lender_created"), ")\n# in place of those of ",
      text("entry"), " (submitted ", text("created"), "); declared ",
      absl::FormatTime(absl::RFC3339_sec, context.env().clock->Wall(), absl::UTCTimeZone()), ".\n");
  for (const Json& value : borrowing["values"]) {
    if (value["standing"] == "same") continue;
    const auto shown = [&](const char* field) {
      return value.contains(field) ? client::RawText(value[field]) : std::string("none");
    };
    absl::StrAppend(&record, "#   ", client::RawText(value["key"]), ": ", shown("own"), " -> ",
                    shown("borrowed"), " (", client::RawText(value["standing"]), ")\n");
  }
  return record;
}

// With the source of the entry's program beside it.
absl::Status WriteSubmission(const Context& context, const client::Client& client,
                             const v1::Submission& own, const v1::SubmissionSpec& proposed,
                             const std::string& record, const std::string& path) {
  const std::string full = context.env().AbsolutePath(path);
  if (FileExists(full))
    return absl::AlreadyExistsError(absl::StrCat(path, " is there already; name another file"));
  const std::string folder = JoinPath(full.substr(0, full.rfind('/') + 1), client::kPackagedSource);
  if (proposed.command().has_source() && FileExists(folder))
    return absl::AlreadyExistsError(absl::StrCat(
        folder,
        " is there already; name a file in another folder, the program's source comes too"));
  RETURN_IF_ERROR(FetchSource(client, own, folder));
  v1::Submission entry = own;
  *entry.mutable_spec() = proposed;
  return WriteFileAtomic(
      full, absl::StrCat(record, client::SubmissionToml(entry), "\n[borrowing]\nfrom = \"",
                         client::ShortId(proposed.borrowing().lender_entry()), "\"\nown = \"",
                         client::ShortId(proposed.borrowing().own_entry()), "\"\n"));
}

absl::StatusOr<ExitStatus> RunBorrow(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::Submission own, client::GetEntry(*client, arguments.Get("ID")));
  ASSIGN_OR_RETURN(const v1::Submission lender, client::GetEntry(*client, arguments.Get("from")));
  rules::Hyperparameters values =
      rules::BorrowValues(HyperparametersOf(own.spec()), HyperparametersOf(lender.spec()));
  for (const std::string& text : arguments.All("set"))
    RETURN_IF_ERROR(SetBatchSize(text, &values));
  const v1::SubmissionSpec proposed = Proposed(own, lender, values);
  const std::vector<rules::Finding> findings = Judge(*context, own, lender, proposed);
  const Json json = BorrowingJson(own, lender, values, findings);
  RETURN_IF_ERROR(
      context->printer().Show({.schema = "assay.borrowing/v1",
                               .value = json,
                               .fields = {{"entry", "entry"},
                                          {"of", "organization"},
                                          {"lender", "lender"},
                                          {"of", "lender_organization"},
                                          {"system", "lender_system"},
                                          {"submitted", "lender_created", Format::kTime},
                                          {"allowed", "is_allowed", Format::kYesNo}},
                               .sections = {{"Hyperparameters",
                                             "values",
                                             {{"HYPERPARAMETER", "key"},
                                              {"OWN", "own"},
                                              {"LENDER", "lender"},
                                              {"BORROWED", "borrowed"},
                                              {"STANDING", "standing", Format::kState}}}}}));
  if (!context->printer().IsJson())
    for (const rules::Finding& finding : findings)
      context->Warn(rules::Format(client::ShortId(own.name()), finding));
  if (!json["is_allowed"].get<bool>()) return ExitStatus::kRuleViolation;
  if (!arguments.Has("file")) return ExitStatus::kDone;
  const std::string path = arguments.Get("file");
  RETURN_IF_ERROR(
      WriteSubmission(*context, *client, own, proposed, RecordOf(*context, json), path));
  context->Note(absl::StrCat("written: ", path, "; next: assay submit ", path, " --wait"));
  return ExitStatus::kDone;
}

}  // namespace

rules::BorrowingEntry BorrowingEntryOf(const v1::SubmissionSpec& spec) {
  const v1::CommandWorkload& command = spec.command();
  const std::map<std::string, std::string> env(command.env().begin(), command.env().end());
  rules::BorrowingConfiguration configuration = {.system = spec.system(),
                                                 .dataset = spec.dataset(),
                                                 .nodes = spec.node_count(),
                                                 .ranks_per_node = spec.ranks_per_node(),
                                                 .backend = spec.trainer().backend(),
                                                 .staging = spec.staging()};
  if (spec.has_command())
    configuration.program = {{"command", absl::StrJoin(command.command(), " ")},
                             {"launcher", command.launcher()},
                             {"source", command.source().sha256()},
                             {"image", command.image().sha256()},
                             {"env", absl::StrJoin(env, " ", absl::PairFormatter("="))}};
  configuration.labels.insert(spec.worker_labels().begin(), spec.worker_labels().end());
  return {.organization = spec.organization(),
          .round = spec.round(),
          .benchmark = spec.benchmark(),
          .division = spec.division(),
          .configuration = std::move(configuration),
          .values = HyperparametersOf(spec),
          .is_borrowed = spec.has_borrowing()};
}

std::vector<Command> BorrowCommands() {
  return {{.path = "entry borrow",
           .summary = "take over another submitter's hyperparameters, as the rules allow it",
           .description =
               "During review the hyperparameters of an entry may once be replaced by another "
               "submitter's for the same benchmark: as a group, with batch sizes of one's own, on "
               "the same system with the same configuration. Shows where each value comes from "
               "and what a rule says against it; with --file it writes the submission file, which "
               "names both entries. The coordinator checks it again and keeps lender, dates and "
               "every change with the new entry.",
           .positionals = {{.name = "ID",
                            .help = "your entry, as e-42",
                            .completes = Completes::kEntry}},
           .options = {{.name = "from",
                        .kind = Option::Kind::kText,
                        .value = "LENDER",
                        .help = "the other submitter's entry",
                        .is_required = true},
                       {.name = "set",
                        .kind = Option::Kind::kText,
                        .value = "KEY=NUMBER",
                        .help = "a batch size of your own; else that of your entry"},
                       {.name = "file",
                        .kind = Option::Kind::kText,
                        .value = "FILE",
                        .help = "write the new submission file"}},
           .examples = {{"assay entry borrow e-42 --from e-17 --file borrowed.toml", ""},
                        {"assay entry borrow e-42 --from e-17 --set global_batch_size=1024", ""}},
           .run = RunBorrow}};
}

}  // namespace assay::cli
