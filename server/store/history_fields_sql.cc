#include "server/store/history_fields_sql.h"

#include <algorithm>
#include <span>

#include "common/log.h"

namespace assay::store {
namespace {

using Form = SqlForm;

constexpr SqlField kEntryFields[] = {
    {"id", "t.id", Form::kId, "e-", true},
    {"organization", "t.organization", Form::kPlain, "", true},
    {"system", "t.system", Form::kPlain, "", true},
    {"benchmark", "t.benchmark", Form::kPlain, "", true},
    {"division", "t.division", Form::kPlain, "", true},
    {"category", "t.category"},
    {"round", "t.round", Form::kPlain, "", true},
    {"scaling", "t.scaling"},
    {"metric", "t.metric", Form::kPlain, "", true},
    {"state", "t.state", Form::kPlain, "", true},
    {"minutes", "t.minutes"},
    {"normalized_minutes", "t.normalized_minutes"},
    {"models_per_minute", "t.models_per_minute"},
    {"verdict", "t.verdict"},
    {"epochs", "t.epochs"},
    {"epoch_seconds", "t.epoch_seconds"},
    {"quality", "t.quality"},
    {"staging_seconds", "t.staging_seconds"},
    {"energy_joules", "t.energy_joules"},
    {"nodes", "t.node_count", Form::kPlain, "", true},
    {"ranks_per_node", "t.ranks_per_node", Form::kPlain, "", true},
    {"accelerators", "t.accelerators"},
    {"batch", "t.batch"},
    {"run_count", "t.run_count", Form::kPlain, "", true},
    {"converged_count", "t.converged_count"},
    {"converged", "t.is_converged", Form::kFlag},
    {"compliant", "t.is_compliant", Form::kFlag},
    {"imported", "t.is_imported", Form::kFlag, "", true},
    {"mlperf", "t.is_mlperf_result", Form::kFlag, "", true},
    {"dataset", "t.dataset"},
    {"backend", "t.backend"},
    {"submitter", "t.submitter"},
    {"rules_digest", "t.rules_digest"},
    {"time", "t.run_start_us", Form::kMicros},
    {"created", "t.created_at_us", Form::kMicros, "", true},
    {"ended", "t.ended_at_us", Form::kMicros},
    {"published", "t.published_at_us", Form::kMicros},
    {"withdrawn", "(t.withdrawn_at_us IS NOT NULL)", Form::kFlag, "", true},
    {"findings", "SELECT f.rule AS v FROM run_findings f WHERE f.entry_id = t.id AND f.run_id = 0",
     Form::kExists},
    {"run_findings",
     "SELECT DISTINCT f.rule AS v FROM run_findings f WHERE f.entry_id = t.id AND f.run_id <> 0",
     Form::kExists},
    {"hyperparameters", "t.id", Form::kKeyed}};

constexpr SqlField kRunFields[] = {
    {"id", "t.id", Form::kId, "r-", true},
    {"entry", "t.entry_id", Form::kId, "e-", true},
    {"number", "t.number", Form::kPlain, "", true},
    {"organization", "t.organization", Form::kPlain, "", true},
    {"system", "t.system", Form::kPlain, "", true},
    {"benchmark", "t.benchmark", Form::kPlain, "", true},
    {"division", "t.division", Form::kPlain, "", true},
    {"category", "(SELECT e.category FROM entry_facts e WHERE e.id = t.entry_id)"},
    {"round", "t.round", Form::kPlain, "", true},
    {"state", "t.state", Form::kPlain, "", true},
    {"state_reason", "t.state_reason"},
    {"entry_state", "(SELECT e.state FROM entry_facts e WHERE e.id = t.entry_id)", Form::kPlain, "",
     true},
    {"minutes", "(t.seconds / 60.0)"},
    {"seconds", "t.seconds"},
    {"epochs", "t.epochs"},
    {"epoch_seconds", "t.epoch_seconds"},
    {"quality", "t.quality"},
    {"staging_seconds", "t.staging_seconds"},
    {"energy_joules", "t.energy_joules"},
    {"touch_ms", "t.touch_ms"},
    {"touch_assurance", "t.touch_assurance"},
    {"nodes", "t.node_count"},
    {"accelerators", "t.accelerators"},
    {"batch", "t.batch"},
    {"seed", "t.seed"},
    {"exit_code", "t.exit_code"},
    {"converged", "t.is_converged", Form::kFlag},
    {"compliant", "t.is_compliant", Form::kFlag},
    {"imported", "(SELECT e.is_imported FROM entry_facts e WHERE e.id = t.entry_id)", Form::kFlag,
     "", true},
    {"dataset", "(SELECT e.dataset FROM entry_facts e WHERE e.id = t.entry_id)"},
    {"backend", "(SELECT e.backend FROM entry_facts e WHERE e.id = t.entry_id)"},
    {"rules_digest", "(SELECT e.rules_digest FROM entry_facts e WHERE e.id = t.entry_id)"},
    {"time", "t.run_start_us", Form::kMicros},
    {"created", "t.created_at_us", Form::kMicros, "", true},
    {"started", "t.started_at_us", Form::kMicros},
    {"ended", "t.ended_at_us", Form::kMicros},
    {"published", "t.published_at_us", Form::kMicros},
    {"withdrawn",
     "(SELECT e.withdrawn_at_us IS NOT NULL FROM entry_facts e WHERE e.id = t.entry_id)",
     Form::kFlag, "", true},
    {"findings", "SELECT f.rule AS v FROM run_findings f WHERE f.run_id = t.id", Form::kExists},
    {"finding_count", "t.finding_count", Form::kPlain, "", true},
    {"hyperparameters", "t.entry_id", Form::kKeyed}};

constexpr SqlField kFindingFields[] = {{"entry", "t.entry_id", Form::kId, "e-", true},
                                       {"run", "NULLIF(t.run_id, 0)", Form::kId, "r-"},
                                       {"rule", "t.rule", Form::kPlain, "", true},
                                       {"severity", "t.severity", Form::kPlain, "", true},
                                       {"class", "t.class"},
                                       {"key", "t.key"},
                                       {"line", "t.line"},
                                       {"expected", "t.expected"},
                                       {"found", "t.found"},
                                       {"section", "t.section"},
                                       {"remedy", "t.remedy"},
                                       {"organization", "e.organization", Form::kPlain, "", true},
                                       {"system", "e.system", Form::kPlain, "", true},
                                       {"benchmark", "e.benchmark", Form::kPlain, "", true},
                                       {"division", "e.division", Form::kPlain, "", true},
                                       {"round", "e.round", Form::kPlain, "", true},
                                       {"entry_state", "e.state", Form::kPlain, "", true},
                                       {"created", "e.created_at_us", Form::kMicros, "", true},
                                       {"published", "e.published_at_us", Form::kMicros}};

constexpr SqlField kWorkerFields[] = {
    {"id", "t.name", Form::kPlain, "", true},
    {"state", "LOWER(t.state)", Form::kPlain, "", true},
    {"state_reason", "NULLIF(json_extract(t.body, '$.state_reason'), '')"},
    {"host", "NULLIF(json_extract(t.body, '$.description.capabilities.host_name'), '')"},
    {"cpu_model", "NULLIF(json_extract(t.body, '$.description.capabilities.cpu_model'), '')"},
    {"cores", "NULLIF(json_extract(t.body, '$.description.capabilities.core_count'), 0)"},
    {"memory_bytes", "NULLIF(json_extract(t.body, '$.description.capabilities.memory_bytes'), 0)"},
    {"accelerators", "json_extract(t.body, '$.description.capabilities.accelerator_count')"},
    {"accelerator_model",
     "NULLIF(json_extract(t.body, '$.description.capabilities.accelerator_model'), '')"},
    {"cache_bytes", "NULLIF(json_extract(t.body, '$.description.capabilities.cache_bytes'), 0)"},
    {"version", "NULLIF(json_extract(t.body, '$.description.version'), '')"},
    {"allocation", "t.allocation_id", Form::kId, "a-"},
    {"state_since", "NULLIF(json_extract(t.body, '$.state_since_us'), 0)", Form::kMicros}};

constexpr SqlField kHyperparameterFields[] = {
    {"entry", "t.entry_id", Form::kId, "e-", true},
    {"key", "t.key", Form::kPlain, "", true},
    {"number", "t.number"},
    {"text", "t.text"},
    {"organization", "e.organization", Form::kPlain, "", true},
    {"system", "e.system", Form::kPlain, "", true},
    {"benchmark", "e.benchmark", Form::kPlain, "", true},
    {"division", "e.division", Form::kPlain, "", true},
    {"round", "e.round", Form::kPlain, "", true},
    {"entry_state", "e.state", Form::kPlain, "", true},
    {"created", "e.created_at_us", Form::kMicros, "", true},
    {"published", "e.published_at_us", Form::kMicros}};

std::span<const SqlField> FieldsOf(HistoryKind kind) {
  switch (kind) {
    case HistoryKind::kEntry:
      return kEntryFields;
    case HistoryKind::kRun:
      return kRunFields;
    case HistoryKind::kFinding:
      return kFindingFields;
    case HistoryKind::kWorker:
      return kWorkerFields;
    case HistoryKind::kHyperparameter:
      return kHyperparameterFields;
  }
  return kEntryFields;
}

}  // namespace

const SqlSource& SourceOf(HistoryKind kind) {
  static const auto* const entry =
      new SqlSource{"entry_facts t", {"t.id DESC"}, "t.organization", "t.published_at_us"};
  static const auto* const run =
      new SqlSource{"run_facts t", {"t.id DESC"}, "t.organization", "t.published_at_us"};
  static const auto* const finding =
      new SqlSource{"run_findings t JOIN entry_facts e ON e.id = t.entry_id",
                    {"t.entry_id DESC", "t.run_id DESC", "t.ordinal DESC"},
                    "e.organization",
                    "e.published_at_us"};
  static const auto* const worker = new SqlSource{
      "(SELECT name, state, allocation_id, body FROM workers WHERE is_forgotten = 0) t",
      {"t.name ASC"},
      nullptr,
      nullptr};
  static const auto* const hyperparameter =
      new SqlSource{"hyperparameters t JOIN entry_facts e ON e.id = t.entry_id",
                    {"t.entry_id DESC", "t.key ASC"},
                    "e.organization",
                    "e.published_at_us"};
  switch (kind) {
    case HistoryKind::kEntry:
      return *entry;
    case HistoryKind::kRun:
      return *run;
    case HistoryKind::kFinding:
      return *finding;
    case HistoryKind::kWorker:
      return *worker;
    case HistoryKind::kHyperparameter:
      return *hyperparameter;
  }
  return *entry;
}

const SqlField& SqlFieldOf(HistoryKind kind, absl::string_view name) {
  const std::span<const SqlField> fields = FieldsOf(kind);
  const auto it = std::find_if(fields.begin(), fields.end(),
                               [name](const SqlField& field) { return name == field.name; });
  CHECK(it != fields.end()) << "field=" << name;
  return *it;
}

}  // namespace assay::store
