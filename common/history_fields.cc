#include "common/history_fields.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"

namespace assay {
namespace {

using Type = HistoryType;

constexpr std::pair<absl::string_view, absl::string_view> kAliases[] = {
    {"org", "organization"},
    {"score_minutes", "minutes"},
    {"status", "category"},
    {"energy", "energy_joules"},
    {"score", "minutes"}};

std::vector<HistoryField> EntryFields() {
  return {{"id", Type::kId, "", "e-42", {}, true},
          {"organization", Type::kText, "", "who submitted it; A+B if several did", {}, true},
          {"system", Type::kText, "", "what it ran on", {}, true},
          {"benchmark", Type::kText, "", "", {}, true},
          {"division", Type::kText, "", "", {"closed", "open"}, true},
          {"category", Type::kText, "", "onprem, cloud, preview or research"},
          {"round", Type::kText, "", "v3.0, or hpc-3.0.0", {}, true},
          {"scaling", Type::kText, "", "strong or weak, where a round tells them apart"},
          {"metric", Type::kText, "", "", {"time_to_solution", "throughput"}},
          {"state",
           Type::kText,
           "",
           "",
           {"open", "running", "checking", "valid", "invalid", "cancelled"},
           true},
          {"minutes",
           Type::kNumber,
           "min",
           "the score: olympic mean of the times to solution",
           {},
           true},
          {"normalized_minutes", Type::kNumber, "min", "the score, normalized for convergence"},
          {"models_per_minute", Type::kNumber, "1/min", "the score of a throughput set"},
          {"verdict", Type::kText, "", "of the comparison with the reference's convergence"},
          {"epochs", Type::kNumber, "", "to the target, mean of the runs that converged"},
          {"epoch_seconds", Type::kNumber, "s", "per epoch, mean of the runs that converged"},
          {"quality", Type::kNumber, "", "at the end, mean of the runs that converged"},
          {"staging_seconds", Type::kNumber, "s", "mean of the runs that have succeeded"},
          {"energy_joules", Type::kNumber, "J", "of a run, mean of those that were metered"},
          {"nodes", Type::kInteger, "", "of one run", {}, true},
          {"ranks_per_node", Type::kInteger, "", ""},
          {"accelerators", Type::kInteger, "", "that trained one model, as its logs say"},
          {"batch", Type::kInteger, "samples", "global batch size"},
          {"run_count", Type::kInteger, "", ""},
          {"converged_count", Type::kInteger, "", "runs that reached the target"},
          {"converged", Type::kBool, "", "whether all runs that have succeeded reached the target"},
          {"compliant", Type::kBool, "", "whether the logs of all of them comply"},
          {"imported", Type::kBool, "", "published elsewhere, and imported"},
          {"mlperf", Type::kBool, "", "whether its round is one of MLPerf"},
          {"dataset", Type::kText, "", ""},
          {"backend", Type::kText, "", "what computes, of the native trainer"},
          {"submitter", Type::kText, "", "who sent it", {}, false, true},
          {"rules_digest", Type::kText, "", "of the rules that judged it"},
          {"time", Type::kTime, "", "when its first run started"},
          {"created", Type::kTime, "", "", {}, true},
          {"ended", Type::kTime, "", ""},
          {"published", Type::kTime, "", "from when on anybody may see it"},
          {"withdrawn", Type::kBool, "", "whether its organisation has taken it back"},
          {"findings", Type::kTexts, "", "rules that the set as a whole violates"},
          {"run_findings", Type::kTexts, "", "rules that any of its runs violates"},
          {"hyperparameters", Type::kMap, "", "by its key in the log: hyperparameters.opt_name"}};
}

std::vector<HistoryField> RunFields() {
  return {{"id", Type::kId, "", "r-7", {}, true},
          {"entry", Type::kId, "", "e-42", {}, true},
          {"number", Type::kInteger, "", "within its entry", {}, true},
          {"organization", Type::kText, "", "", {}, true},
          {"system", Type::kText, "", "", {}, true},
          {"benchmark", Type::kText, "", "", {}, true},
          {"division", Type::kText, "", "", {"closed", "open"}},
          {"category", Type::kText, "", "onprem, cloud, preview or research"},
          {"round", Type::kText, "", "v3.0, or hpc-3.0.0", {}, true},
          {"state",
           Type::kText,
           "",
           "",
           {"queued", "assigned", "running", "uploading", "succeeded", "failed", "cancelled"},
           true},
          {"state_reason", Type::kText, "", "why it failed", {}, false, true},
          {"entry_state",
           Type::kText,
           "",
           "",
           {"open", "running", "checking", "valid", "invalid", "cancelled"}},
          {"minutes", Type::kNumber, "min", "time to solution", {}, true},
          {"seconds", Type::kNumber, "s", "the same"},
          {"epochs", Type::kInteger, "", "", {}, true},
          {"epoch_seconds", Type::kNumber, "s", "per epoch, without staging on the clock"},
          {"quality", Type::kNumber, "", "the last before its end", {}, true},
          {"staging_seconds", Type::kNumber, "s", ""},
          {"energy_joules", Type::kNumber, "J",
           "from its start to its end, by the meters of its nodes"},
          {"touch_ms", Type::kNumber, "ms", "first touch of the dataset after the run's start"},
          {"touch_assurance", Type::kText, "", "proven, observed or self-reported"},
          {"nodes", Type::kInteger, "", ""},
          {"accelerators", Type::kInteger, "", "as its log says"},
          {"batch", Type::kInteger, "samples", "global batch size"},
          {"seed", Type::kInteger, "", "once it has started"},
          {"exit_code", Type::kInteger, "", ""},
          {"converged", Type::kBool, "", "whether it reached the target", {}, true},
          {"compliant", Type::kBool, "", "whether its log complies"},
          {"imported", Type::kBool, "", "published elsewhere, and imported"},
          {"dataset", Type::kText, "", ""},
          {"backend", Type::kText, "", "what computes, of the native trainer"},
          {"rules_digest", Type::kText, "", "of the rules that judged it"},
          {"time", Type::kTime, "", "when its log says that it started"},
          {"created", Type::kTime, "", ""},
          {"started", Type::kTime, "", "when its nodes had begun"},
          {"ended", Type::kTime, "", ""},
          {"published", Type::kTime, "", "from when on anybody may see it"},
          {"withdrawn", Type::kBool, "", "whether its entry was taken back"},
          {"findings", Type::kTexts, "", "rules that it violates"},
          {"finding_count", Type::kInteger, "", ""},
          {"hyperparameters", Type::kMap, "", "of its entry, by their keys in the log"}};
}

std::vector<HistoryField> FindingFields() {
  return {{"entry", Type::kId, "", "e-42", {}, true},
          {"run", Type::kId, "", "r-7; nothing if it is about the set as a whole", {}, true},
          {"rule", Type::kText, "", "R-HP-004", {}, true},
          {"severity", Type::kText, "", "", {"error", "warning"}, true},
          {"class", Type::kText, "", "of the violation: missing:KEY"},
          {"key", Type::kText, "", "of the log", {}, true},
          {"line", Type::kInteger, "", "of the log", {}, true},
          {"expected", Type::kText, "", "", {}, true},
          {"found", Type::kText, "", "", {}, true},
          {"section", Type::kText, "", "of the rules' document"},
          {"remedy", Type::kText, "", ""},
          {"organization", Type::kText, "", "", {}, true},
          {"system", Type::kText, "", ""},
          {"benchmark", Type::kText, "", "", {}, true},
          {"division", Type::kText, "", "", {"closed", "open"}},
          {"round", Type::kText, "", "v3.0, or hpc-3.0.0", {}, true},
          {"entry_state",
           Type::kText,
           "",
           "",
           {"open", "running", "checking", "valid", "invalid", "cancelled"}},
          {"created", Type::kTime, "", "when the entry was"},
          {"published", Type::kTime, "", "from when on anybody may see it"}};
}

std::vector<HistoryField> WorkerFields() {
  return {{"id", Type::kText, "", "w0", {}, true},
          {"state", Type::kText, "", "", {"alive", "suspect", "lost", "draining", "gone"}, true},
          {"state_reason", Type::kText, "", ""},
          {"host", Type::kText, "", "", {}, true},
          {"cpu_model", Type::kText, "", "", {}, true},
          {"cores", Type::kInteger, "", "", {}, true},
          {"memory_bytes", Type::kInteger, "bytes", "", {}, true},
          {"accelerators", Type::kInteger, "", "", {}, true},
          {"accelerator_model", Type::kText, "", "", {}, true},
          {"cache_bytes", Type::kInteger, "bytes", "quota of the node's cache"},
          {"version", Type::kText, "", "of its agent"},
          {"allocation", Type::kId, "", "a-3", {}, false, true},
          {"state_since", Type::kTime, "", ""}};
}

std::vector<HistoryField> HyperparameterFields() {
  return {{"entry", Type::kId, "", "e-42", {}, true},
          {"key", Type::kText, "", "of the log: opt_name", {}, true},
          {"number", Type::kNumber, "", "its value, if that is a number", {}, true},
          {"text", Type::kText, "", "its value, if that is none; true and false too", {}, true},
          {"organization", Type::kText, "", "", {}, true},
          {"system", Type::kText, "", ""},
          {"benchmark", Type::kText, "", "", {}, true},
          {"division", Type::kText, "", "", {"closed", "open"}, true},
          {"round", Type::kText, "", "v3.0, or hpc-3.0.0", {}, true},
          {"entry_state",
           Type::kText,
           "",
           "",
           {"open", "running", "checking", "valid", "invalid", "cancelled"}},
          {"created", Type::kTime, "", "when the entry was"},
          {"published", Type::kTime, "", "from when on anybody may see it"}};
}

std::string LowerChoice(absl::string_view value) {
  return absl::AsciiStrToLower(value);
}

FilterType FilterTypeOf(HistoryType type) {
  switch (type) {
    case Type::kText:
    case Type::kId:
    case Type::kTexts:
      return FilterType::kText;
    case Type::kInteger:
    case Type::kNumber:
      return FilterType::kNumber;
    case Type::kBool:
      return FilterType::kBool;
    case Type::kTime:
      return FilterType::kTime;
    case Type::kMap:
      return FilterType::kMap;
  }
  return FilterType::kText;
}

}  // namespace

absl::string_view ToString(HistoryKind kind) {
  switch (kind) {
    case HistoryKind::kEntry:
      return "entry";
    case HistoryKind::kRun:
      return "run";
    case HistoryKind::kFinding:
      return "finding";
    case HistoryKind::kWorker:
      return "worker";
    case HistoryKind::kHyperparameter:
      return "hyperparameter";
  }
  return "";
}

std::optional<HistoryKind> ParseHistoryKind(absl::string_view text) {
  for (const HistoryKind kind : kHistoryKinds)
    if (ToString(kind) == text) return kind;
  return std::nullopt;
}

const std::vector<HistoryField>& HistoryFields(HistoryKind kind) {
  static const auto* const entry = new std::vector<HistoryField>(EntryFields());
  static const auto* const run = new std::vector<HistoryField>(RunFields());
  static const auto* const finding = new std::vector<HistoryField>(FindingFields());
  static const auto* const worker = new std::vector<HistoryField>(WorkerFields());
  static const auto* const hyperparameter = new std::vector<HistoryField>(HyperparameterFields());
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

const HistoryField* FindHistoryField(HistoryKind kind, absl::string_view name) {
  for (const auto& [alias, field] : kAliases)
    if (name == alias) name = field;
  const std::vector<HistoryField>& fields = HistoryFields(kind);
  const auto it = std::find_if(fields.begin(), fields.end(),
                               [name](const HistoryField& field) { return field.name == name; });
  return it == fields.end() ? nullptr : &*it;
}

FilterSchema HistorySchema(HistoryKind kind,
                           std::string (*canonical_round)(absl::string_view name)) {
  FilterSchema schema;
  for (const HistoryField& field : HistoryFields(kind)) {
    FilterField& filter = schema.fields[std::string(field.name)];
    filter.type = FilterTypeOf(field.type);
    for (const absl::string_view choice : field.choices)
      filter.choices.emplace_back(choice);
    if (!filter.choices.empty()) filter.canonical = LowerChoice;
    if (field.name == "round") filter.canonical = canonical_round;
  }
  for (const auto& [alias, field] : kAliases)
    if (schema.fields.contains(std::string(field)))
      schema.aliases.emplace(std::string(alias), std::string(field));
  return schema;
}

}  // namespace assay
