#include "common/rules/check.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/exit_code.h"
#include "common/json_reader.h"
#include "common/log.h"
#include "common/mllog.h"
#include "common/rules/config_run.h"
#include "common/rules/fact_collector.h"
#include "common/rules/log_rules.h"

namespace assay::rules {
namespace {

constexpr int kParseErrorsShown = 20;  // further ones are only counted
constexpr int kPendingMax = 100;       // of a config; further ones come with Finish

struct NodeRule {
  absl::string_view id;
  const char* error_class;
};
constexpr NodeRule kNodeRules[] = {
    {"R-CLK-001", "clock:node"},  {"R-CLK-002", "clock:node"},  {"R-PAU-002", "paused:node"},
    {"R-PAU-003", "paused:rank"}, {"R-PAU-004", "paused:rank"}, {"R-PAU-005", "paused:node"},
    {"R-TIM-004", "memory:node"}, {"R-TIM-005", "caches:node"}, {"R-TIM-007", "memory:node"}};

// How the reference fails to open a config that does not exist.
absl::string_view OpenException(absl::string_view file_name) {
  constexpr size_t kFileNameMax = 255;
  // A surrogate has three bytes from 0xED 0xA0. Those from U+DC80 to U+DCFF stand for bytes that
  // are no UTF-8, which a file name may hold.
  for (size_t i = 0; i + 2 < file_name.size(); ++i) {
    const auto byte = [&](size_t at) { return static_cast<uint8_t>(file_name[at]); };
    if (byte(i) != 0xED || byte(i + 1) < 0xA0) continue;
    if (byte(i + 1) != 0xB2 && byte(i + 1) != 0xB3) return "UnicodeEncodeError";
  }
  if (absl::StrContains(file_name, '\0')) return "ValueError";
  return file_name.size() > kFileNameMax ? "OSError" : "FileNotFoundError";
}

std::vector<Finding> MissingConfig(const std::string& name) {
  const std::string file_name = absl::StrCat(name, ".yaml");
  constexpr size_t kNameLengthMax = 120;
  const std::string found =
      absl::StrCat("a log that asks for the rules ", DumpJson(name).substr(0, kNameLengthMax));
  const absl::string_view exception = OpenException(file_name);
  return {LogFinding("R-CFG-001", absl::StrCat("config_missing:", file_name), 0, found),
          LogFinding("R-CFG-001", absl::StrCat("crash:", exception), 0,
                     absl::StrCat("none; the reference checker stops with ", exception))};
}

}  // namespace

// Feeds every config with every record that it has a rule for, whether some record has asked for
// the config yet or not: so no record needs to be kept.
class LiveChecker::Engine {
 public:
  explicit Engine(const RuleSet* rules) : rules_(rules), facts_(*rules) {
    const int config_count = static_cast<int>(rules->data().configs.size());
    for (int config = 0; config < config_count; ++config)
      runs_.emplace_back(rules, config);
    pending_.resize(runs_.size());
    active_.push_back(0);
  }

  std::vector<Finding> AddLine(absl::string_view line);
  std::vector<Finding> AddTooLongLine();
  CheckResult Finish(CheckOptions options) const;
  Facts CurrentFacts() const;

 private:
  using ByKey = std::map<std::string, Finding>;

  std::vector<Finding> AddReadLine(const MllogLine& line);
  void AddRecord(const MllogLine& line, int key, std::vector<Finding>* found);
  void AddParseError(Finding finding, std::vector<Finding>* found);
  void Feed(int config, const Record& record, std::vector<Finding>* found);
  void Report(int config, std::vector<Finding> violated, std::vector<Finding>* found);
  void Activate(const std::string& name, std::vector<Finding>* found);
  bool IsActive(int config) const;
  bool IsOverruled(int config, const std::string& key) const;
  std::vector<Finding> ParseFindings() const;
  std::vector<Finding> WalkQueue(CheckOptions options, std::vector<Finding> final_findings) const;
  static void Merge(const ConfigRun::Outcome& outcome, CheckOptions options, ByKey* by_key,
                    ByKey* warnings, std::vector<Finding>* final_findings);

  const RuleSet* rules_;
  FactCollector facts_;
  std::vector<ConfigRun> runs_;                // by config
  std::vector<int> active_;                    // configs asked for so far, in that order
  std::vector<std::vector<Finding>> pending_;  // by config: findings of configs not asked for yet
  int64_t line_number_ = 0;
  int64_t record_count_ = 0;
  int64_t parse_error_count_ = 0;
  std::vector<Finding> parse_errors_;
  std::optional<Finding> crash_;
};

std::vector<Finding> LiveChecker::Engine::AddTooLongLine() {
  ++line_number_;
  std::vector<Finding> found;
  if (!crash_) {
    AddParseError(LogFinding("R-LOG-004", "line_too_long", line_number_, "a longer line"), &found);
  }
  return found;
}

std::vector<Finding> LiveChecker::Engine::AddLine(absl::string_view text) {
  if (text.size() > kMllogLineBytesMax && absl::StrContains(text, kMllogToken)) {
    return AddTooLongLine();
  }
  ++line_number_;
  return crash_ ? std::vector<Finding>() : AddReadLine(ReadMllogLine(text));
}

std::vector<Finding> LiveChecker::Engine::AddReadLine(const MllogLine& line) {
  std::vector<Finding> found;
  switch (line.outcome) {
    case MllogOutcome::kNoRecord:
      break;
    case MllogOutcome::kRecord: {
      ++record_count_;
      std::string storage;
      const int key = rules_->KeyNumber(MllogKey(line, &storage));
      if (key >= 0) AddRecord(line, key, &found);
      break;
    }
    case MllogOutcome::kParseError:
      AddParseError(LogFinding("R-LOG-001", "parse_errors", line_number_, line.problem), &found);
      break;
    case MllogOutcome::kCrash:
      crash_ = LogFinding(
          "R-LOG-003", absl::StrCat("crash:", line.problem), line_number_,
          absl::StrCat("a record on which the reference checker stops with ", line.problem));
      found.push_back(*crash_);
      break;
  }
  return found;
}

void LiveChecker::Engine::AddParseError(Finding finding, std::vector<Finding>* found) {
  if (++parse_error_count_ <= kParseErrorsShown) parse_errors_.push_back(finding);
  found->push_back(std::move(finding));
}

void LiveChecker::Engine::AddRecord(const MllogLine& line, int key, std::vector<Finding>* found) {
  Record record = {.line = line_number_,
                   .time_ms = line.time_ms,
                   .key = key,
                   .value = BuildJson(line.value_json),
                   .value_json = line.value_json};
  if (rules_->UsesMetadata(key)) record.metadata = BuildJson(line.metadata_json);
  facts_.Add(record);
  for (const int config : rules_->ConfigsWith(key))
    Feed(config, record, found);
}

void LiveChecker::Engine::Feed(int config, const Record& record, std::vector<Finding>* found) {
  ConfigRun& run = runs_[static_cast<size_t>(config)];
  const size_t enqueued_before = run.enqueued().size();
  std::vector<Finding> violated = run.Add(record);
  const bool is_active = IsActive(config);
  if (is_active) {
    Report(config, std::move(violated), found);
  } else {
    std::vector<Finding>& pending = pending_[static_cast<size_t>(config)];
    const auto room = static_cast<size_t>(kPendingMax) - pending.size();
    violated.resize(std::min(violated.size(), room));
    std::move(violated.begin(), violated.end(), std::back_inserter(pending));
  }
  // A name that is asked for again moves to the end, so new ones only add.
  if (!is_active || run.enqueued().size() == enqueued_before) return;
  Activate(run.enqueued().back(), found);
}

void LiveChecker::Engine::Report(int config, std::vector<Finding> violated,
                                 std::vector<Finding>* found) {
  for (Finding& finding : violated) {
    if (!IsOverruled(config, finding.key)) found->push_back(std::move(finding));
  }
}

bool LiveChecker::Engine::IsActive(int config) const {
  return std::find(active_.begin(), active_.end(), config) != active_.end();
}

// A config that was asked for later judges the key afresh.
bool LiveChecker::Engine::IsOverruled(int config, const std::string& key) const {
  const int number = rules_->KeyNumber(key);
  const auto own = std::find(active_.begin(), active_.end(), config);
  return number >= 0 && std::any_of(own + 1, active_.end(), [&](int later) {
           return rules_->FindRule(later, number) != nullptr;
         });
}

void LiveChecker::Engine::Activate(const std::string& name, std::vector<Finding>* found) {
  const int config = rules_->ConfigNumber(name);
  if (config < 0) {
    const std::vector<Finding> missing = MissingConfig(name);
    found->insert(found->end(), missing.begin(), missing.end());
    return;
  }
  if (IsActive(config)) return;
  active_.push_back(config);
  Report(config, std::move(pending_[static_cast<size_t>(config)]), found);
  pending_[static_cast<size_t>(config)].clear();
  const std::vector<std::string> names = runs_[static_cast<size_t>(config)].enqueued();
  for (const std::string& next : names)
    Activate(next, found);
}

Facts LiveChecker::Engine::CurrentFacts() const {
  Facts facts = facts_.Get();
  facts.record_count = record_count_;
  facts.parse_error_count = parse_error_count_;
  return facts;
}

std::vector<Finding> LiveChecker::Engine::ParseFindings() const {
  std::vector<Finding> findings = parse_errors_;
  if (parse_error_count_ > kParseErrorsShown) {
    findings.back().found =
        absl::StrCat(parse_error_count_ - kParseErrorsShown + 1, " more malformed lines");
  }
  if (record_count_ == 0) findings.push_back(LogFinding("R-LOG-002", "no_log_lines", 0, "none"));
  return findings;
}

void LiveChecker::Engine::Merge(const ConfigRun::Outcome& outcome, CheckOptions options,
                                ByKey* by_key, ByKey* warnings,
                                std::vector<Finding>* final_findings) {
  for (const Finding& finding : outcome.by_key)
    by_key->insert_or_assign(finding.key, finding);
  for (Finding finding : outcome.warnings) {
    if (options.warnings_are_errors) finding.severity = Severity::kError;
    (options.warnings_are_errors ? by_key : warnings)->insert_or_assign(finding.key, finding);
  }
  final_findings->insert(final_findings->end(), outcome.final_findings.begin(),
                         outcome.final_findings.end());
}

// Section 2.2: configs in queue order; each first forgives what earlier ones said of its keys.
std::vector<Finding> LiveChecker::Engine::WalkQueue(CheckOptions options,
                                                    std::vector<Finding> final_findings) const {
  ByKey by_key, warnings;
  std::deque<std::string> queue = {rules_->data().configs[0].name};
  std::string previous;
  bool has_died = false;
  // Configs that ask for each other in a circle, on which the reference would never end, end here.
  size_t steps_left = 4 * rules_->data().configs.size();
  for (; !queue.empty() && steps_left > 0; queue.pop_front(), --steps_left) {
    const int config = rules_->ConfigNumber(queue.front());
    if (config < 0) {
      const std::vector<Finding> missing = MissingConfig(queue.front());
      final_findings.insert(final_findings.end(), missing.begin(), missing.end());
      has_died = true;
      break;
    }
    // The same config twice in a row says the same twice.
    if (std::exchange(previous, queue.front()) == queue.front()) continue;
    for (const KeyRule& rule : rules_->data().configs[static_cast<size_t>(config)].rules) {
      by_key.erase(rule.key);
    }
    const ConfigRun& run = runs_[static_cast<size_t>(config)];
    const ConfigRun::Outcome outcome = run.Finish();
    Merge(outcome, options, &by_key, &warnings, &final_findings);
    has_died = outcome.crashed;
    if (has_died) break;
    queue.insert(queue.end(), run.enqueued().begin(), run.enqueued().end());
  }
  for (const auto& [key, finding] : by_key)
    final_findings.push_back(finding);
  std::stable_sort(final_findings.begin(), final_findings.end(),
                   [](const Finding& a, const Finding& b) { return a.line < b.line; });
  if (has_died) return final_findings;  // the reference shows no warnings then
  for (const auto& [key, finding] : warnings)
    final_findings.push_back(finding);
  return final_findings;
}

CheckResult LiveChecker::Engine::Finish(CheckOptions options) const {
  CheckResult result = {
      .facts = CurrentFacts(), .rule_set = rules_->name(), .digest = rules_->digest()};
  // The reference reads the whole file before it checks anything.
  result.findings = crash_ ? std::vector<Finding>{*crash_} : WalkQueue(options, ParseFindings());
  result.pass = std::none_of(result.findings.begin(), result.findings.end(),
                             [](const Finding& f) { return f.severity == Severity::kError; });
  return result;
}

LiveChecker::LiveChecker(const RuleSet& rules) : engine_(std::make_unique<Engine>(&rules)) {}
LiveChecker::~LiveChecker() = default;
LiveChecker::LiveChecker(LiveChecker&&) noexcept = default;
LiveChecker& LiveChecker::operator=(LiveChecker&&) noexcept = default;

std::vector<Finding> LiveChecker::AddLine(absl::string_view line) {
  if (!absl::StrContains(line, '\r')) return engine_->AddLine(line);
  // A lone CR ends a line too; a follower of the file may split at LF only.
  std::vector<Finding> found;
  MllogLines lines(line);
  for (absl::string_view part; lines.Next(&part);) {
    const std::vector<Finding> more = engine_->AddLine(part);
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

Facts LiveChecker::facts() const {
  return engine_->CurrentFacts();
}

CheckResult LiveChecker::Finish(CheckOptions options) const {
  return engine_->Finish(options);
}

void StreamChecker::Add(absl::string_view bytes) {
  lines_.Add(bytes, [this](absl::string_view line, bool is_too_long) { Take(line, is_too_long); });
}

void StreamChecker::Take(absl::string_view line, bool is_too_long) {
  if (is_too_long) {
    checker_.engine_->AddTooLongLine();
  } else {
    checker_.engine_->AddLine(line);
  }
}

CheckResult StreamChecker::Finish(CheckOptions options) {
  lines_.End([this](absl::string_view line, bool is_too_long) { Take(line, is_too_long); });
  return checker_.Finish(options);
}

CheckResult Check(absl::string_view log_bytes, const RuleSet& rules, CheckOptions options) {
  StreamChecker checker(rules);
  checker.Add(log_bytes);
  return checker.Finish(options);
}

std::vector<Finding> CheckFirstTouch(std::optional<double> run_start_ms, const FirstTouch& touch) {
  constexpr char kClass[] = "first_touch:run_start";
  const std::string seen =
      absl::StrCat(touch.touch_ms, " ms (", touch.witness, ", first read ", touch.path, ")");
  const auto finding_of = [&touch, kClass](absl::string_view rule, std::string found) {
    Finding finding =
        LogFinding(touch.is_attributed ? rule : "R-TIM-006", kClass, 0, std::move(found));
    if (!touch.is_attributed) finding.severity = Severity::kWarning;
    return finding;
  };
  if (!run_start_ms) {
    Finding finding = finding_of("R-TIM-002", "no run_start");
    finding.expected = absl::StrCat("run_start before the first touch at ", seen);
    return {finding};
  }
  // Written so that a NaN stamp fails.
  if (*run_start_ms <= static_cast<double>(touch.touch_ms + touch.tolerance_ms)) return {};
  Finding finding =
      finding_of("R-TIM-001", absl::StrFormat("run_start at %.0f ms, %.0f ms later", *run_start_ms,
                                              *run_start_ms - static_cast<double>(touch.touch_ms)));
  finding.expected = absl::StrCat("run_start at or before the witnessed first touch at ", seen);
  return {finding};
}

Finding StoppedRank(std::string found) {
  Finding finding = LogFinding("R-PAU-001", "paused:rank", 0, std::move(found));
  finding.severity = Severity::kWarning;
  return finding;
}

bool IsOfNode(absl::string_view rule_id) {
  return std::any_of(std::begin(kNodeRules), std::end(kNodeRules),
                     [rule_id](const auto& rule) { return rule.id == rule_id; });
}

bool IsOfMemory(absl::string_view rule_id) {
  return rule_id == "R-TIM-004" || rule_id == "R-TIM-005" || rule_id == "R-TIM-007";
}

Finding NodeFinding(absl::string_view rule_id, std::string found) {
  const auto* const rule =
      std::find_if(std::begin(kNodeRules), std::end(kNodeRules),
                   [rule_id](const auto& candidate) { return candidate.id == rule_id; });
  CHECK(rule != std::end(kNodeRules)) << rule_id;
  Finding finding = LogFinding(rule->id, rule->error_class, 0, std::move(found));
  finding.severity = Severity::kWarning;
  return finding;
}

Finding ShortFirstPass(std::string found, bool is_violation) {
  Finding finding = LogFinding("R-IOB-001", "storage:first_pass", 0, std::move(found));
  if (!is_violation) finding.severity = Severity::kWarning;
  return finding;
}

Finding DeclaredCache(int64_t bytes) {
  return LogFinding("R-IOB-002", "staging:cache_hit_bytes", 0, absl::StrCat(bytes, " bytes"));
}

Finding CopiedBefore(std::string found) {
  Finding finding = LogFinding("R-IOB-003", "dataset:local", 0, std::move(found));
  finding.severity = Severity::kWarning;
  return finding;
}

Finding WeakFirstTouch(std::string found) {
  return LogFinding("R-TIM-008", "first_touch:assurance", 0, std::move(found));
}

std::optional<Finding> RankFailure(int exit_code, std::string found) {
  if (exit_code == static_cast<int>(ExitCode::kDiverged))
    return LogFinding("R-PAR-001", "ranks:diverged", 0, std::move(found));
  if (exit_code == static_cast<int>(ExitCode::kIntruder))
    return LogFinding("R-NET-001", "ranks:intruder", 0, std::move(found));
  return std::nullopt;
}

Finding NoWitness() {
  Finding finding = LogFinding("R-TIM-003", "first_touch:not_witnessed", 0, "none");
  finding.severity = Severity::kWarning;
  return finding;
}

}  // namespace assay::rules
