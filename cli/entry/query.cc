#include "cli/entry/query.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "cli/command/context.h"
#include "cli/entry/entry.h"
#include "cli/rules/rule_sets.h"
#include "common/client/json.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/filter.h"
#include "common/status.h"

namespace assay::cli {
namespace {

std::string Lower(absl::string_view value) {
  return absl::AsciiStrToLower(value);
}
std::string RoundName(absl::string_view value) {
  return CanonicalRound(std::string(value));
}

// A field of the filter. `member`: where the entry's JSON has it. `ask`: has the coordinator leave
// out what has another value; nullptr: it cannot.
struct QueryField {
  const char* name;
  const char* member;
  FilterField field;
  void (*ask)(v1::ListSubmissionsRequest*, const std::string& value) = nullptr;
};

const std::vector<QueryField>& Fields() {
  using Type = FilterType;
  using Request = v1::ListSubmissionsRequest;
  static const auto* const kFields = new std::vector<QueryField>{
      {"id", "id", {}},
      {"organization",
       "organization",
       {},
       [](Request* request, const std::string& value) { request->set_organization(value); }},
      {"system",
       "system",
       {},
       [](Request* request, const std::string& value) { request->set_system(value); }},
      {"benchmark",
       "benchmark",
       {},
       [](Request* request, const std::string& value) { request->set_benchmark(value); }},
      {"division",
       "division",
       {.choices = {"closed", "open"}, .canonical = Lower},
       [](Request* request, const std::string& value) { request->set_division(value); }},
      {"round",
       "round",
       {.canonical = RoundName},
       [](Request* request, const std::string& value) { request->set_round(value); }},
      {"state",
       "state",
       {.choices = {"open", "running", "checking", "valid", "invalid", "cancelled"},
        .canonical = Lower},
       [](Request* request, const std::string& value) {
         request->set_state(absl::AsciiStrToUpper(value));
       }},
      {"scaling", "scaling", {}},
      {"status", "status", {}},
      {"dataset", "dataset", {}},
      {"submitter", "submitter", {}},
      {"backend", "backend", {}},
      {"rules_digest", "rules_digest", {}},
      {"minutes", "score_minutes", {.type = Type::kNumber}},
      {"models_per_minute", "models_per_minute", {.type = Type::kNumber}},
      {"nodes", "nodes", {.type = Type::kNumber}},
      {"run_count", "run_count", {.type = Type::kNumber}},
      {"imported", "is_imported", {.type = Type::kBool}},
      {"created", "created", {.type = Type::kTime}},
      {"findings", "findings", {}},
      {"hyperparameters", "hyperparameters", {.type = Type::kMap}}};
  return *kFields;
}

const FilterSchema& Schema() {
  static const auto* const kSchema = [] {
    auto* const schema = new FilterSchema;
    for (const QueryField& field : Fields())
      schema->fields.emplace(field.name, field.field);
    schema->aliases = {{"org", "organization"}, {"score_minutes", "minutes"}};
    return schema;
  }();
  return *kSchema;
}

const QueryField& FindField(absl::string_view name) {
  return *std::find_if(Fields().begin(), Fields().end(),
                       [name](const QueryField& field) { return field.name == name; });
}

FilterValue ValueOf(const Json& json, FilterType type) {
  if (json.is_number()) return json.get<double>();
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_string() && type == FilterType::kTime) {
    absl::Time time;
    std::string error;
    if (!absl::ParseTime(absl::RFC3339_full, json.get<std::string>(), &time, &error)) return {};
    return time;
  }
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_array()) return {};
  std::vector<std::string> rules;  // the only list is that of findings
  for (const Json& finding : json)
    rules.push_back(finding.value("rule", ""));
  return rules;
}

bool IsMatch(const FilterNode& filter, const Json& entry) {
  return Matches(filter, [&entry](const std::string& name, const std::string& key) -> FilterValue {
    const QueryField& field = FindField(name);
    const auto member = entry.find(field.member);
    if (member == entry.end()) return {};
    if (key.empty()) return ValueOf(*member, field.field.type);
    const auto value = member->find(key);
    return value == member->end() ? FilterValue() : ValueOf(*value, FilterType::kText);
  });
}

// What all matching entries have for certain is the coordinator's to find. True if nothing is left
// to look at here.
bool AskFor(const FilterNode& filter, std::set<std::string>* asked,
            v1::ListSubmissionsRequest* request) {
  if (filter.kind == FilterNode::Kind::kAll) {
    bool is_all = true;
    for (const FilterNode& part : filter.parts)
      is_all = AskFor(part, asked, request) && is_all;
    return is_all;
  }
  const Restriction& restriction = filter.restriction;
  if (filter.kind != FilterNode::Kind::kRestriction ||
      restriction.comparator != Comparator::kEqual || restriction.text.empty() ||
      absl::StrContains(restriction.text, '*'))
    return false;
  const QueryField& field = FindField(restriction.field);
  if (field.ask == nullptr || !asked->insert(restriction.field).second) return false;
  field.ask(request, restriction.text);
  return true;
}

// KEY=VALUE with spaces in it, which the shell has kept together, needs no further quotes.
std::string AsTerm(const std::string& argument) {
  const size_t equals = argument.find('=');
  if (equals == std::string::npos) return argument;
  const absl::string_view value = absl::string_view(argument).substr(equals + 1);
  const bool is_plain = value.find_first_of("\"'()<>=!:\\") == absl::string_view::npos;
  const bool is_spaced = absl::StrContains(value, ' ') && !absl::StrContains(value, " OR ") &&
                         !absl::StrContains(value, " AND ") && !absl::StrContains(value, " NOT ");
  if (!is_plain || !is_spaced || argument.substr(0, equals).find(' ') != std::string::npos)
    return argument;
  return absl::StrCat(argument.substr(0, equals), "=\"", value, "\"");
}

absl::StatusOr<ExitStatus> RunQuery(Context* context, const Arguments& arguments) {
  std::vector<std::string> terms = arguments.All("FILTER");
  std::transform(terms.begin(), terms.end(), terms.begin(), AsTerm);
  ASSIGN_OR_RETURN(const FilterNode filter,
                   ParseFilter(absl::StrJoin(terms, " "), Schema(), absl::Now()));
  if (arguments.Has("explain")) {
    context->out() << FilterText(filter) << "\n";
    return ExitStatus::kDone;
  }
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const int64_t limit, arguments.Integer("limit", 0));
  v1::ListSubmissionsRequest request;
  std::set<std::string> asked;
  const bool is_whole = AskFor(filter, &asked, &request);
  ASSIGN_OR_RETURN(std::vector<v1::Submission> entries,
                   client::ListEntries(*client, request,
                                       is_whole ? limit : std::numeric_limits<int64_t>::max()));
  if (!is_whole)
    std::erase_if(entries, [&filter](const v1::Submission& entry) {
      return !IsMatch(filter, client::EntryJson(entry));
    });
  if (std::ssize(entries) > limit) entries.resize(static_cast<size_t>(limit));
  return PrintEntries(context, entries, limit);
}

}  // namespace

std::vector<Command> QueryCommands() {
  std::vector<std::string> names;
  for (const QueryField& field : Fields())
    names.push_back(field.field.type == FilterType::kMap ? absl::StrCat(field.name, ".KEY")
                                                         : field.name);
  return {{.path = "query",
           .summary = "find entries by a filter",
           .description = absl::StrCat(
               "A filter is FIELD=VALUE, or another comparison: != < <= > >=, and : for text "
               "within a text or a rule among the findings. A * stands for any text. Terms are "
               "joined by AND, which need not be written, OR, NOT (or -) and parentheses; OR binds "
               "tighter than AND. Times are 2026-11-23 or ago(\"90d\"). Fields: ",
               absl::StrJoin(names, ", "), "."),
           .positionals = {{.name = "FILTER",
                            .help = "in quotes, or word by word; nothing: all entries",
                            .is_required = false,
                            .is_repeated = true}},
           .options = {{.name = "limit",
                        .letter = 'n',
                        .kind = Option::Kind::kInteger,
                        .value = "N",
                        .help = "at most so many",
                        .fallback = "1000"},
                       {.name = "explain", .help = "print the filter with its parentheses only"}},
           .examples = {{"assay query round=v1.0 division=closed state=valid", ""},
                        {"assay query '(round=v0.7 OR round=v1.0) minutes<30 nodes>=64'", ""},
                        {"assay query 'hyperparameters.global_batch_size>1024 -org=Fujitsu'", ""},
                        {"assay query 'findings:R-HP-* created>ago(\"90d\")' -o csv", ""}},
           .run = RunQuery}};
}

}  // namespace assay::cli
