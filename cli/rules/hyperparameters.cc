#include "cli/rules/hyperparameters.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "cli/command/context.h"
#include "cli/rules/rule_sets.h"
#include "common/json_document.h"
#include "common/json_reader.h"
#include "common/rules/reference_values.h"
#include "common/status.h"

namespace assay::cli {
namespace {

absl::StatusOr<ExitStatus> RunRulesHyperparameters(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const RuleSetRef rules, LoadRuleSet(context->env(), arguments.Get("ROUND")));
  const std::string wanted = arguments.Get("benchmark");
  if (!wanted.empty() && rules->FindBenchmark(wanted) == nullptr)
    return absl::NotFoundError(absl::StrCat(rules->name(), " has no benchmark '", wanted,
                                            "'; see assay rules show ", rules->name()));
  ListView view{.schema = "assay.hyperparameter/v1",
                .columns = {{"BENCHMARK", "benchmark"}, {"DIVISION", "division"}},
                .empty_text = "the round has no benchmark"};
  for (const Column& column : HyperparameterColumns(/*has_values=*/false))
    view.columns.push_back(column);
  for (const rules::Benchmark& benchmark : rules->data().benchmarks) {
    if (!wanted.empty() && benchmark.name != wanted) continue;
    for (const char* division : {"closed", "open"}) {
      if (arguments.Has("division") && arguments.Get("division") != division) continue;
      for (const Json& row : HyperparameterRows(*rules, benchmark.name, division, {})) {
        Json item = {{"benchmark", benchmark.name}, {"division", division}};
        item.update(row);
        item.erase("standing");
        view.items.push_back(std::move(item));
      }
    }
  }
  RETURN_IF_ERROR(context->printer().List(view));
  return ExitStatus::kDone;
}

}  // namespace

rules::Hyperparameters HyperparametersOf(const v1::SubmissionSpec& spec) {
  rules::Hyperparameters values;
  for (const v1::Hyperparameter& parameter : spec.hyperparameters()) {
    JsonResult parsed = ParseJson(parameter.json_value());
    if (parsed.error == JsonError::kNone) values.emplace(parameter.key(), std::move(parsed.value));
  }
  return values;
}

void SetHyperparameters(const rules::Hyperparameters& values, v1::SubmissionSpec* spec) {
  constexpr size_t kJsonBytesMax = 1024;
  spec->clear_hyperparameters();
  for (const auto& [key, value] : values) {
    std::string text = DumpJson(value);
    if (text.size() > kJsonBytesMax) continue;
    v1::Hyperparameter* parameter = spec->add_hyperparameters();
    parameter->set_key(key);
    parameter->set_json_value(std::move(text));
  }
}

Json ToPrintable(const JsonValue& value) {
  const std::string text = DumpJson(value);
  Json json = ParseJsonDocument<Json>(text);
  return json.is_discarded() ? Json(text) : json;
}

Json HyperparameterRows(const rules::RuleSet& rules, const std::string& benchmark,
                        const std::string& division, const rules::Hyperparameters& values) {
  Json rows = Json::array();
  for (const rules::HyperparameterRow& row :
       rules::CompareWithReference(rules, benchmark, division, values)) {
    Json json = {{"key", row.key}};
    if (row.reference) json["reference"] = ToPrintable(*row.reference);
    if (row.value) json["value"] = ToPrintable(*row.value);
    json["standing"] = std::string(rules::StandingName(row.standing));
    if (!row.allowed.empty()) json["allowed"] = row.allowed;
    if (!row.rule_id.empty()) json["rule"] = row.rule_id;
    rows.push_back(std::move(json));
  }
  return rows;
}

std::vector<Column> HyperparameterColumns(bool has_values) {
  // A state is never cut, and a name must not be either.
  std::vector<Column> columns = {{"HYPERPARAMETER", "key", Format::kState},
                                 {"REFERENCE", "reference"}};
  if (has_values) {
    columns.push_back({"YOURS", "value"});
    columns.push_back({"STANDING", "standing", Format::kState});
  }
  columns.push_back({"ALLOWED", "allowed", Format::kText, 2});
  columns.push_back({"RULE", "rule", Format::kText, 3});
  return columns;
}

std::vector<Command> TuningCommands() {
  return {{.path = "rules hyperparameters",
           .summary = "the hyperparameters of a round: the reference's values, what is allowed",
           .description = "Where ALLOWED is empty, any value is.",
           .positionals = {{.name = "ROUND",
                            .help = "hpc-3.0.0, v1.0, or a .toml file",
                            .completes = Completes::kRound}},
           .options = {{.name = "benchmark",
                        .kind = Option::Kind::kText,
                        .value = "BENCHMARK",
                        .help = "of this benchmark only",
                        .completes = Completes::kBenchmark},
                       {.name = "division",
                        .kind = Option::Kind::kChoice,
                        .value = "DIVISION",
                        .help = "of this division only",
                        .choices = {"closed", "open"}}},
           .examples = {{"assay rules hyperparameters hpc-3.0.0 --benchmark cosmoflow --division "
                         "closed",
                         ""}},
           .run = RunRulesHyperparameters}};
}

}  // namespace assay::cli
