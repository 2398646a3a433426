#include "cli/terminal/resource_columns.h"

namespace assay::cli {
namespace {

constexpr char kEnergyText[] = "energy_text";

}  // namespace

void ShowEnergy(bool is_structured, const std::string& text, ShowView* view) {
  for (Column& field : view->fields)
    if (field.field == kEnergyText && is_structured) field.field = "energy_joules";
  if (!is_structured && !text.empty()) view->value[kEnergyText] = text;
}

const std::vector<Column>& EntryColumns() {
  static const auto* const kColumns =
      new std::vector<Column>{{"ID", "id"},
                              {"STATE", "state", Format::kState},
                              {"ORG", "organization", Format::kText, 3},
                              {"SYSTEM", "system"},
                              {"BENCHMARK", "benchmark"},
                              {"DIVISION", "division", Format::kText, 4},
                              {"ROUND", "round", Format::kText, 2},
                              {"SCALING", "scaling", Format::kText, 5},
                              {"RUNS", "run_count", Format::kNumber, 3},
                              {"SCORE", "score_minutes", Format::kMinutes},
                              {"CREATED", "created", Format::kTime, 6},
                              {"SUBMITTER", "submitter", Format::kText, 9},
                              {"SOURCE", "source_path", Format::kText, 9},
                              {"MODELS/MIN", "models_per_minute", Format::kNumber, 5},
                              {"PUBLISHED", "published", Format::kTime, 9},
                              {"WITHDRAWN", "withdrawn", Format::kTime, 1}};
  return *kColumns;
}

const std::vector<Column>& EntryFields() {
  static const auto* const kFields =
      new std::vector<Column>{{"entry", "id"},
                              {"state", "state", Format::kState},
                              {"reason", "state_reason"},
                              {"organization", "organization"},
                              {"system", "system"},
                              {"benchmark", "benchmark"},
                              {"division", "division"},
                              {"round", "round"},
                              {"scaling", "scaling"},
                              {"score", "score_minutes", Format::kMinutes},
                              {"energy to solution", kEnergyText},
                              {"first touch", "touch_assurance"},
                              {"  after, ms", "touch_after_run_start_ms", Format::kNumber},
                              {"    off by, ms", "touch_error_ms", Format::kNumber},
                              {"  its holes", "touch_hole_codes", Format::kWords},
                              {"normalized score", "normalized_score_minutes", Format::kMinutes},
                              {"reference", "reference_verdict"},
                              {"MLPerf result", "is_mlperf_result", Format::kYesNo},
                              {"dataset", "dataset"},
                              {"nodes", "nodes"},
                              {"ranks per node", "ranks_per_node"},
                              {"backend", "backend"},
                              {"program", "workload.command", Format::kWords},
                              {"launcher", "workload.launcher"},
                              {"source", "workload.source.sha256", Format::kDigest},
                              {"commit", "workload.source.git_commit"},
                              {"image", "workload.image.path"},
                              {"image digest", "workload.image.sha256", Format::kDigest},
                              {"hyperparameters", "hyperparameters"},
                              {"borrowed from", "borrowed_from"},
                              {"submitted", "borrowed_from_created", Format::kTime},
                              {"in place of", "borrowed_for"},
                              {"submitted", "borrowed_for_created", Format::kTime},
                              {"borrowed", "borrowed", Format::kTime},
                              {"labels", "labels"},
                              {"submitter", "submitter"},
                              {"created", "created", Format::kTime},
                              {"ended", "ended", Format::kTime},
                              {"measured", "measured", Format::kTime},
                              {"published", "published", Format::kTime},
                              {"withdrawn", "withdrawn", Format::kTime},
                              {"  reason", "withdraw_reason"},
                              {"rules", "rules_digest", Format::kDigest},
                              {"imported from", "source_path"}};
  return *kFields;
}

const std::vector<Column>& RunColumns() {
  static const auto* const kColumns =
      new std::vector<Column>{{"ID", "id"},
                              {"ENTRY", "entry", Format::kText, 2},
                              {"STATE", "state", Format::kState},
                              {"CONVERGED", "converged", Format::kYesNo, 1},
                              {"TIME", "seconds", Format::kSeconds},
                              {"QUALITY", "quality", Format::kNumber, 2},
                              {"EPOCHS", "epochs", Format::kNumber, 3},
                              {"NODES", "nodes", Format::kText, 4},
                              {"STARTED", "started", Format::kTime, 5},
                              {"SEED", "seed", Format::kText, 9},
                              {"REASON", "state_reason", Format::kText, 6}};
  return *kColumns;
}

const std::vector<Column>& RunFields() {
  static const auto* const kFields =
      new std::vector<Column>{{"run", "id"},
                              {"entry", "entry"},
                              {"number", "number"},
                              {"state", "state", Format::kState},
                              {"reason", "state_reason"},
                              {"converged", "converged", Format::kYesNo},
                              {"compliant", "compliant", Format::kYesNo},
                              {"time to solution", "seconds", Format::kSeconds},
                              {"  off by at most", "error_seconds", Format::kMillis},
                              {"  by the node's clock", "arrival_seconds", Format::kMillis},
                              {"  by the coordinator's", "coordinator_seconds", Format::kMillis},
                              {"    off by at most", "coordinator_error_seconds", Format::kMillis},
                              {"energy to solution", kEnergyText},
                              {"quality", "quality", Format::kNumber},
                              {"epochs", "epochs"},
                              {"global batch size", "global_batch_size"},
                              {"seed", "seed"},
                              {"nodes", "nodes"},
                              {"  of", "nodes_of"},
                              {"  dataset in cache", "cached_nodes"},
                              {"created", "created", Format::kTime},
                              {"started", "started", Format::kTime},
                              {"ended", "ended", Format::kTime},
                              {"exit code", "exit_code"},
                              {"touch after start", "touch_after_run_start_ms", Format::kNumber},
                              {"  off by at most", "touch_error_ms", Format::kNumber},
                              {"  its assurance", "touch_assurance"},
                              {"  its holes", "touch_hole_codes", Format::kWords},
                              {"staging ms", "staging_ms"},
                              {"events", "events"}};
  return *kFields;
}

const std::vector<Column>& BorrowedColumns() {
  static const auto* const kColumns =
      new std::vector<Column>{{"HYPERPARAMETER", "key"},
                              {"OWN", "own"},
                              {"BORROWED", "value"},
                              {"STANDING", "standing", Format::kState}};
  return *kColumns;
}

const std::vector<Column>& FindingColumns() {
  static const auto* const kColumns = new std::vector<Column>{
      {"SEVERITY", "severity", Format::kState},   {"RULE", "rule"},
      {"LINE", "line", Format::kNumber, 3},       {"CLASS", "class", Format::kText, 2},
      {"EXPECTED", "expected", Format::kText, 1}, {"FOUND", "found", Format::kText, 1},
      {"REMEDY", "remedy", Format::kText, 4}};
  return *kColumns;
}

const std::vector<Column>& RunScoreColumns() {
  static const auto* const kColumns =
      new std::vector<Column>{{"RUN", "id"},
                              {"TIME", "seconds", Format::kSeconds},
                              {"+-", "error_seconds", Format::kMillis, 7},
                              {"BY THE NODE", "arrival_seconds", Format::kMillis, 8},
                              {"MINUTES", "minutes", Format::kMinutes, 4},
                              {"JOULES", "energy_joules", Format::kNumber, 8},
                              {"CONVERGED", "converged", Format::kYesNo, 1},
                              {"RULES", "verdict", Format::kState, 2},
                              {"QUALITY", "quality", Format::kNumber, 3},
                              {"EPOCHS", "epochs", Format::kNumber, 5},
                              {"TOUCH AFTER START", "touch", Format::kText, 6},
                              {"IN THE SCORE", "part"}};
  return *kColumns;
}

}  // namespace assay::cli
