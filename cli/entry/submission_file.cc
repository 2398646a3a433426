#include "cli/entry/submission_file.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

#include "cli/command/command.h"
#include "cli/entry/submission_keys.h"
#include "cli/entry/workload_table.h"
#include "common/client/suggest.h"
#include "common/rules/benchmark_settings.h"
#include "common/toml.h"

namespace assay::cli {
namespace {

constexpr absl::Duration kTimeoutMax = absl::Hours(24 * 365);
constexpr size_t kLineShownMax = 1000;
constexpr size_t kProblemsMax = 50;  // nobody reads more at once

// Hyperparameters by their name in the log.
const std::vector<std::string>& HyperparameterKeys() {
  static const auto* const kKeys = new std::vector<std::string>(rules::KnownHyperparameters());
  return *kKeys;
}

// Other names under which findings speak of a key of the file.
const std::map<std::string, std::string>& Aliases() {
  static const auto* const kAliases = new std::map<std::string, std::string>{
      {"submission_benchmark", "benchmark"}, {"submission_division", "division"},
      {"submission_org", "organization"},    {"submission_platform", "system"},
      {"submission_status", "status"},       {"node_count", "nodes"},
      {"number_of_nodes", "nodes"},          {"run_count", "runs"},
      {"epoch_count_max", "epochs_max"},     {"replacement_count_max", "replacements"},
      {"train_samples", "dataset"},          {"eval_samples", "dataset"},
      {"worker_labels", "labels"},           {"own_entry", "borrowing.own"},
      {"lender_entry", "borrowing.from"}};
  return *kAliases;
}

Position PositionOf(const toml::source_region& region) {
  return {static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

// The value as JSON, or what is wrong with it.
std::optional<nlohmann::json> ToJson(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return nlohmann::json(*text);
  if (const auto number = node.value_exact<int64_t>()) return nlohmann::json(*number);
  if (const auto flag = node.value_exact<bool>()) return nlohmann::json(*flag);
  if (const auto number = node.value_exact<double>())
    return std::isfinite(*number) ? std::optional<nlohmann::json>(*number) : std::nullopt;
  if (!node.is_array()) return std::nullopt;
  nlohmann::json array = nlohmann::json::array();
  for (const toml::node& element : *node.as_array()) {
    const std::optional<nlohmann::json> value = ToJson(element);
    if (!value.has_value() || value->is_array()) return std::nullopt;
    array.push_back(*value);
  }
  return array;
}

class Reader {
 public:
  Reader(absl::string_view text, absl::string_view path) {
    file_.path = std::string(path);
    file_.text = std::string(text);
  }

  SubmissionFile Read() {
    const ParsedToml parsed = ParseToml(file_.text);
    if (parsed.problem.has_value()) {
      Problem({parsed.problem->line, parsed.problem->column}, parsed.problem->message,
              "this is no submission; see https://toml.io and docs/submitter.md");
    } else {
      has_workload_ = parsed.table.contains("workload");
      for (const auto& [key, node] : parsed.table)
        ReadTopLevel(std::string(key.str()), PositionOf(key.source()), node);
      if (const toml::node* node = parsed.table.get("workload")) ReadProgram(*node);
      CheckRequired();
      CheckRuns();
    }
    std::stable_sort(
        file_.problems.begin(), file_.problems.end(),
        [](const Diagnostic& a, const Diagnostic& b) { return a.at.line < b.at.line; });
    return std::move(file_);
  }

 private:
  void Problem(Position at, std::string message, std::string remedy) {
    if (file_.problems.size() == kProblemsMax) return;
    file_.problems.push_back(
        {.at = at, .message = std::move(message), .remedy = std::move(remedy)});
  }

  void ReadTopLevel(const std::string& name, Position key_at, const toml::node& node) {
    file_.positions[name] = PositionOf(node.source());
    if (name == "workload") return;  // when all else is known
    if (name == "hyperparameters" || name == "labels" || name == "borrowing")
      return ReadTable(name, key_at, node);
    if (name == "run_timeout") return ReadTimeout(node);
    const auto known = std::find_if(SubmissionKeys().begin(), SubmissionKeys().end(),
                                    [&](const SubmissionKey& key) { return key.name == name; });
    if (known == SubmissionKeys().end()) return UnknownKey(name, key_at);
    if (known->set_text != nullptr) {
      ReadText(*known, node);
    } else if (known->set_flag != nullptr) {
      ReadFlag(*known, node);
    } else {
      ReadNumber(*known, node);
    }
  }

  void ReadProgram(const toml::node& node) {
    const Position at = PositionOf(node.source());
    if (const toml::table* table = node.as_table()) return ReadWorkload(*table, at, &file_);
    Problem(at, "'workload' must be a table",
            "write [workload] on a line of its own and command = [...] below it");
  }

  void ReadTable(const std::string& name, Position key_at, const toml::node& node) {
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      Problem(PositionOf(node.source()), absl::StrCat("'", name, "' must be a table"),
              absl::StrCat("write [", name, "] on a line of its own and the values below it"));
      return;
    }
    file_.positions[name] = key_at;
    for (const auto& [key, value] : *table) {
      const std::string member(key.str());
      if (name == "labels") {
        ReadLabel(member, value);
      } else if (name == "borrowing") {
        ReadParty(member, PositionOf(key.source()), value);
      } else {
        ReadHyperparameter(member, PositionOf(key.source()), value);
      }
    }
    if (name == "borrowing") CheckParties(key_at);
  }

  // from = "e-12", own = "e-7": the entries of a borrowing.
  void ReadParty(const std::string& name, Position key_at, const toml::node& node) {
    if (name != "from" && name != "own") {
      Problem(key_at, absl::StrCat("unknown key '", name, "' of a borrowing"),
              "it has from, the lender's entry, and own, your original entry");
      return;
    }
    const Position at = PositionOf(node.source());
    file_.positions[absl::StrCat("borrowing.", name)] = at;
    const auto id = node.value_exact<std::string>();
    int64_t number = 0;
    if (!id.has_value() || !absl::StartsWith(*id, "e-") ||
        !absl::SimpleAtoi(absl::string_view(*id).substr(2), &number) || number < 1) {
      Problem(at, absl::StrCat("'", name, "' must be an entry's id"),
              absl::StrCat("write it as ", name, " = \"e-42\""));
      return;
    }
    v1::HyperparameterBorrowing* borrowing = file_.spec.mutable_borrowing();
    const std::string entry = absl::StrCat("submissions/e-", number);
    if (name == "from") {
      borrowing->set_lender_entry(entry);
    } else {
      borrowing->set_own_entry(entry);
    }
  }

  void CheckParties(Position at) {
    for (const char* name : {"from", "own"})
      if (file_.positions.count(absl::StrCat("borrowing.", name)) == 0)
        Problem(at, absl::StrCat("'", name, "' is missing"),
                "a borrowing has from, the lender's entry, and own, your original entry");
  }

  void UnknownKey(const std::string& name, Position at) {
    std::vector<std::string> known;
    for (const SubmissionTable& table : SubmissionTables())
      known.emplace_back(table.name);
    for (const SubmissionKey& key : SubmissionKeys())
      known.emplace_back(key.name);
    const std::vector<std::string>& hyperparameters = HyperparameterKeys();
    const bool is_misplaced =
        std::find(hyperparameters.begin(), hyperparameters.end(), name) != hyperparameters.end();
    const std::string near = client::Suggest(name, known);
    std::string remedy = absl::StrCat("known keys: ", absl::StrJoin(known, ", "));
    if (!near.empty()) remedy = absl::StrCat("write ", near);
    if (is_misplaced) remedy = "it is a hyperparameter: move it below [hyperparameters]";
    Problem(at, absl::StrCat("unknown key '", name, "'"), remedy);
  }

  void ReadText(const SubmissionKey& key, const toml::node& node) {
    const auto value = node.value_exact<std::string>();
    if (!value.has_value() || value->empty()) {
      Problem(PositionOf(node.source()), absl::StrCat("'", key.name, "' must be a text"),
              absl::StrCat("write it in quotes, as ", key.name, " = ", key.example));
      return;
    }
    key.set_text(&file_.spec, *value);
  }

  void ReadFlag(const SubmissionKey& key, const toml::node& node) {
    const auto value = node.value_exact<bool>();
    if (!value.has_value())
      return Problem(PositionOf(node.source()),
                     absl::StrCat("'", key.name, "' must be true or false"),
                     absl::StrCat("write ", key.name, " = ", key.example));
    key.set_flag(&file_.spec, *value);
  }

  void ReadNumber(const SubmissionKey& key, const toml::node& node) {
    const auto value = node.value_exact<int64_t>();
    if (!value.has_value() || *value < 0 || *value > key.number_max) {
      Problem(PositionOf(node.source()),
              absl::StrCat("'", key.name, "' must be a whole number from 0 to ", key.number_max),
              absl::StrCat("write ", key.name, " = ", key.example));
      return;
    }
    key.set_number(&file_.spec, static_cast<int32_t>(*value));
  }

  void ReadTimeout(const toml::node& node) {
    const auto text = node.value_exact<std::string>();
    const absl::StatusOr<absl::Duration> duration =
        ParseDurationText(text.has_value() ? *text : "");
    if (!duration.ok() || *duration <= absl::ZeroDuration() || *duration > kTimeoutMax) {
      Problem(PositionOf(node.source()), "'run_timeout' must be a duration of at most a year",
              "write it as run_timeout = \"90m\"");
      return;
    }
    file_.spec.mutable_run_timeout()->set_seconds(absl::ToInt64Seconds(*duration));
  }

  void ReadLabel(const std::string& name, const toml::node& node) {
    const auto value = node.value_exact<std::string>();
    if (!value.has_value()) {
      Problem(PositionOf(node.source()), absl::StrCat("label '", name, "' must be a text"),
              absl::StrCat("write it in quotes, as ", name, " = \"a100\""));
      return;
    }
    (*file_.spec.mutable_worker_labels())[name] = *value;
  }

  // A program that trains what Assay does not know names its hyperparameters itself; the round
  // judges them. Keys are read in order of their names, so the benchmark is known.
  bool MayBeNew() const {
    return has_workload_ && rules::FindBenchmarkSettings(file_.spec.benchmark()) == nullptr;
  }

  void ReadHyperparameter(const std::string& name, Position key_at, const toml::node& node) {
    const std::vector<std::string>& known = HyperparameterKeys();
    if (!MayBeNew() && std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string near = client::Suggest(name, known);
      Problem(key_at, absl::StrCat("unknown hyperparameter '", name, "'"),
              near.empty() ? absl::StrCat("known are ", absl::StrJoin(known, ", "))
                           : absl::StrCat("write ", near));
      return;
    }
    file_.positions[name] = PositionOf(node.source());
    const std::optional<nlohmann::json> value = ToJson(node);
    if (!value.has_value()) {
      Problem(PositionOf(node.source()),
              absl::StrCat("'", name, "' must be a number, a text, true, false or a list of these"),
              absl::StrCat("give ", name, " a finite, plain value"));
      return;
    }
    v1::Hyperparameter* parameter = file_.spec.add_hyperparameters();
    parameter->set_key(name);
    parameter->set_json_value(value->dump());
  }

  // A throughput set has instances, one of time to solution has runs.
  void CheckRuns() {
    const bool is_throughput = file_.spec.metric() == "throughput";
    const auto wrong = file_.positions.find(is_throughput ? "runs" : "instances");
    if (wrong == file_.positions.end()) return;
    if (is_throughput) {
      Problem(wrong->second, "'runs' says nothing of a throughput set",
              "write instances = 20: how many are trained side by side");
    } else {
      Problem(wrong->second, "'instances' are of a throughput set",
              "write metric = \"throughput\", or runs in place of instances");
    }
  }

  void CheckRequired() {
    const int last_line =
        static_cast<int>(std::count(file_.text.begin(), file_.text.end(), '\n')) + 1;
    for (const SubmissionKey& key : SubmissionKeys()) {
      if (!key.is_required || file_.positions.count(key.name) > 0) continue;
      Problem({last_line, 1}, absl::StrCat("'", key.name, "' is missing"),
              absl::StrCat("add ", key.name, " = ", key.example, " above the first [table]"));
    }
  }

  SubmissionFile file_;
  bool has_workload_ = false;
};

// The line of that number, from 1; empty if there is none.
absl::string_view LineOf(absl::string_view text, int number) {
  for (; number > 1; --number) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos) return "";
    text.remove_prefix(end + 1);
  }
  return number < 1 ? absl::string_view() : text.substr(0, text.find('\n'));
}

}  // namespace

SubmissionFile ParseSubmissionFile(absl::string_view text, absl::string_view path) {
  return Reader(text, path).Read();
}

Diagnostic DiagnosticFor(const SubmissionFile& file, const v1::Finding& finding) {
  Diagnostic diagnostic;
  if (finding.severity() == v1::Finding::WARNING)
    diagnostic.severity = Diagnostic::Severity::kWarning;
  diagnostic.rule = finding.rule();
  diagnostic.remedy = finding.remedy();
  std::string key = finding.key();
  const auto alias = Aliases().find(key);
  if (alias != Aliases().end()) key = alias->second;
  const auto position = file.positions.find(key);
  if (position != file.positions.end()) diagnostic.at = position->second;
  std::vector<std::string> parts;
  if (!finding.found().empty()) {
    parts.push_back(key.empty() ? finding.found() : absl::StrCat(key, " = ", finding.found()));
  } else if (!key.empty()) {
    parts.push_back(key);
  }
  if (!finding.expected().empty()) parts.push_back(absl::StrCat("expected ", finding.expected()));
  if (parts.empty()) parts.push_back(finding.error_class());
  diagnostic.message = absl::StrJoin(parts, ", ");
  return diagnostic;
}

std::string FormatDiagnostic(const SubmissionFile& file, const Diagnostic& diagnostic) {
  std::string text = file.path;
  if (diagnostic.at.line > 0)
    absl::StrAppend(&text, ":", diagnostic.at.line, ":", diagnostic.at.column);
  absl::StrAppend(&text, ": ",
                  diagnostic.severity == Diagnostic::Severity::kError ? "error" : "warning",
                  diagnostic.rule.empty() ? "" : absl::StrCat(" ", diagnostic.rule), ": ",
                  diagnostic.message, "\n");
  const absl::string_view line = LineOf(file.text, diagnostic.at.line);
  const int before = std::max(diagnostic.at.column - 1, 0);
  if (line.size() > kLineShownMax) {
    absl::StrAppendFormat(&text, "%5d | (%d bytes)\n", diagnostic.at.line, line.size());
  } else if (!line.empty()) {
    absl::StrAppendFormat(&text, "%5d | %s\n", diagnostic.at.line, line);
    absl::StrAppend(&text, "      | ", std::string(static_cast<size_t>(before), ' '), "^\n");
  }
  if (!diagnostic.remedy.empty()) absl::StrAppend(&text, "  fix: ", diagnostic.remedy, "\n");
  return text;
}

}  // namespace assay::cli
