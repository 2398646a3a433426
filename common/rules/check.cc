#include "common/rules/check.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/json_reader.h"
#include "common/mllog.h"
#include "common/rules/config_run.h"
#include "common/rules/fact_collector.h"

namespace assay::rules {
namespace {

constexpr int kParseErrorsShown = 20;  // further ones are only counted

constexpr char kLogSection[] = "MLLOG format";

Finding ParseFinding(int64_t line, const char* problem) {
  return {.rule_id = "R-LOG-001",
          .error_class = "parse_errors",
          .line = line,
          .expected = "a JSON object behind the token",
          .found = problem,
          .section = kLogSection,
          .remedy = "write records with one write per line, and remove damaged lines' cause"};
}

Finding NoLinesFinding() {
  return {.rule_id = "R-LOG-002",
          .error_class = "no_log_lines",
          .expected = "records that begin with \":::MLLOG \"",
          .found = "none",
          .section = kLogSection,
          .remedy = "give the log that the run wrote, not its console output"};
}

Finding CrashFinding(int64_t line, const char* exception) {
  return {.rule_id = "R-LOG-003",
          .error_class = absl::StrCat("crash:", exception),
          .line = line,
          .expected = "a JSON object with time_ms (a number), key, value and metadata",
          .found = "a record on which the reference checker stops",
          .section = kLogSection,
          .remedy = "write the six members that the reference logger writes"};
}

// How the reference fails to open a config that does not exist.
absl::string_view OpenException(absl::string_view file_name) {
  constexpr size_t kFileNameMax = 255;
  if (absl::StrContains(file_name, '\0')) return "ValueError";
  // A surrogate, which has no UTF-8: three bytes from 0xED 0xA0.
  for (size_t i = 0; i + 1 < file_name.size(); ++i) {
    const auto byte = [&](size_t at) { return static_cast<uint8_t>(file_name[at]); };
    if (byte(i) == 0xED && byte(i + 1) >= 0xA0) return "UnicodeEncodeError";
  }
  return file_name.size() > kFileNameMax ? "OSError" : "FileNotFoundError";
}

std::vector<Finding> MissingConfig(const std::string& name) {
  const std::string file_name = absl::StrCat(name, ".yaml");
  Finding missing = {.rule_id = "R-CFG-001",
                     .error_class = absl::StrCat("config_missing:", file_name),
                     .expected = "a division, benchmark and options that the round has",
                     .found = absl::StrCat("a log that asks for the rules \"", name, "\""),
                     .section = "Divisions and benchmarks",
                     .remedy =
                         "log submission_division, submission_benchmark and scheduler_type "
                         "with the round's names"};
  Finding crash = missing;
  crash.error_class = absl::StrCat("crash:", OpenException(file_name));
  return {std::move(missing), std::move(crash)};
}

}  // namespace

// Feeds every config that is known to be needed with all records; a config that is asked for late
// gets the earlier records from the buffer.
class LiveChecker::Engine {
 public:
  explicit Engine(const RuleSet* rules) : rules_(rules), facts_(*rules) {
    runs_.emplace_back(rules, 0);
  }

  std::vector<Finding> AddLine(absl::string_view line);
  CheckResult Finish(CheckOptions options) const;
  Facts CurrentFacts() const;

 private:
  using ByKey = std::map<std::string, Finding>;

  void AddRecord(const MllogLine& line, int key, std::vector<Finding>* found);
  void Feed(size_t run, const Record& record, std::vector<Finding>* found);
  void Activate(const std::string& name, std::vector<Finding>* found);
  bool IsOverruled(size_t run, int key) const;
  const ConfigRun* FindRun(int config) const;
  std::vector<Finding> ParseFindings() const;
  std::vector<Finding> WalkQueue(CheckOptions options, std::vector<Finding> for_good) const;
  static void Merge(const ConfigRun::Outcome& outcome, CheckOptions options, ByKey* by_key,
                    ByKey* warnings, std::vector<Finding>* for_good);

  const RuleSet* rules_;
  FactCollector facts_;
  std::vector<ConfigRun> runs_;  // in the order of activation
  std::deque<Record> records_;
  int64_t line_number_ = 0;
  int64_t record_count_ = 0;
  int64_t parse_error_count_ = 0;
  std::vector<Finding> parse_errors_;
  std::optional<Finding> crash_;
};

std::vector<Finding> LiveChecker::Engine::AddLine(absl::string_view text) {
  ++line_number_;
  if (crash_) return {};
  const MllogLine line = ReadMllogLine(text);
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
      found.push_back(ParseFinding(line_number_, line.problem));
      if (++parse_error_count_ <= kParseErrorsShown) parse_errors_.push_back(found.back());
      break;
    case MllogOutcome::kCrash:
      crash_ = CrashFinding(line_number_, line.problem);
      found.push_back(*crash_);
      break;
  }
  return found;
}

void LiveChecker::Engine::AddRecord(const MllogLine& line, int key, std::vector<Finding>* found) {
  records_.push_back({.line = line_number_,
                      .time_ms = line.time_ms,
                      .key = key,
                      .value = BuildJson(line.value_json),
                      .metadata = BuildJson(line.metadata_json)});
  const Record& record = records_.back();
  facts_.Add(record);
  // Configs that this record activates have seen it when they are ready.
  const size_t run_count = runs_.size();
  for (size_t i = 0; i < run_count; ++i)
    Feed(i, record, found);
}

void LiveChecker::Engine::Feed(size_t run, const Record& record, std::vector<Finding>* found) {
  const size_t enqueued_before = runs_[run].enqueued().size();
  std::vector<Finding> violated = runs_[run].Add(record);
  if (!violated.empty() && !IsOverruled(run, record.key)) {
    found->insert(found->end(), std::make_move_iterator(violated.begin()),
                  std::make_move_iterator(violated.end()));
  }
  // Activate may move runs_, so copy the names first.
  const std::vector<std::string> names(
      runs_[run].enqueued().begin() + static_cast<std::ptrdiff_t>(enqueued_before),
      runs_[run].enqueued().end());
  for (const std::string& name : names)
    Activate(name, found);
}

// A config that was activated later judges the key afresh.
bool LiveChecker::Engine::IsOverruled(size_t run, int key) const {
  return std::any_of(
      runs_.begin() + static_cast<std::ptrdiff_t>(run) + 1, runs_.end(),
      [&](const ConfigRun& later) { return rules_->FindRule(later.config(), key) != nullptr; });
}

void LiveChecker::Engine::Activate(const std::string& name, std::vector<Finding>* found) {
  const int config = rules_->ConfigNumber(name);
  if (config < 0) {
    const std::vector<Finding> missing = MissingConfig(name);
    found->insert(found->end(), missing.begin(), missing.end());
    return;
  }
  if (FindRun(config) != nullptr) return;
  const size_t run = runs_.size();
  runs_.emplace_back(rules_, config);
  for (const Record& record : records_)
    Feed(run, record, found);
}

const ConfigRun* LiveChecker::Engine::FindRun(int config) const {
  const auto found = std::find_if(runs_.begin(), runs_.end(),
                                  [&](const ConfigRun& run) { return run.config() == config; });
  return found == runs_.end() ? nullptr : &*found;
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
  if (record_count_ == 0) findings.push_back(NoLinesFinding());
  return findings;
}

void LiveChecker::Engine::Merge(const ConfigRun::Outcome& outcome, CheckOptions options,
                                ByKey* by_key, ByKey* warnings, std::vector<Finding>* for_good) {
  for (const Finding& finding : outcome.by_key)
    by_key->insert_or_assign(finding.key, finding);
  for (Finding finding : outcome.warnings) {
    if (options.warnings_are_errors) finding.severity = Severity::kError;
    (options.warnings_are_errors ? by_key : warnings)->insert_or_assign(finding.key, finding);
  }
  for_good->insert(for_good->end(), outcome.for_good.begin(), outcome.for_good.end());
}

// Section 2.2: configs in queue order; each first forgives what earlier ones said of its keys.
std::vector<Finding> LiveChecker::Engine::WalkQueue(CheckOptions options,
                                                    std::vector<Finding> for_good) const {
  ByKey by_key, warnings;
  std::deque<std::string> queue = {rules_->data().configs[0].name};
  std::string previous;
  for (; !queue.empty(); queue.pop_front()) {
    const int config = rules_->ConfigNumber(queue.front());
    if (config < 0) {
      const std::vector<Finding> missing = MissingConfig(queue.front());
      for_good.insert(for_good.end(), missing.begin(), missing.end());
      break;
    }
    // The same config twice in a row says the same twice.
    if (std::exchange(previous, queue.front()) == queue.front()) continue;
    for (const KeyRule& rule : rules_->data().configs[static_cast<size_t>(config)].rules) {
      by_key.erase(rule.key);
    }
    const ConfigRun* run = FindRun(config);
    const ConfigRun::Outcome outcome = run->Finish();
    Merge(outcome, options, &by_key, &warnings, &for_good);
    if (outcome.crashed) break;
    queue.insert(queue.end(), run->enqueued().begin(), run->enqueued().end());
  }
  for (const auto& [key, finding] : by_key)
    for_good.push_back(finding);
  std::stable_sort(for_good.begin(), for_good.end(),
                   [](const Finding& a, const Finding& b) { return a.line < b.line; });
  for (const auto& [key, finding] : warnings)
    for_good.push_back(finding);
  return for_good;
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

CheckResult Check(absl::string_view log_bytes, const RuleSet& rules, CheckOptions options) {
  LiveChecker checker(rules);
  MllogLines lines(log_bytes);
  for (absl::string_view line; lines.Next(&line);)
    checker.AddLine(line);
  return checker.Finish(options);
}

std::vector<Finding> CheckFirstTouch(std::optional<double> run_start_ms, const FirstTouch& touch) {
  Finding finding = {.rule_id = "R-TIM-001",
                     .error_class = "first_touch:run_start",
                     .key = "run_start",
                     .section = "HPC rules, Timing",
                     .remedy = "log run_start before the first read of the dataset"};
  const std::string seen =
      absl::StrCat(touch.touch_ms, " ms (", touch.witness, ", first read ", touch.path, ")");
  if (!run_start_ms) {
    finding.rule_id = "R-TIM-002";
    finding.expected = absl::StrCat("run_start before the first touch at ", seen);
    finding.found = "no run_start";
    return {finding};
  }
  // Written so that a NaN stamp fails.
  if (*run_start_ms <= static_cast<double>(touch.touch_ms + touch.tolerance_ms)) return {};
  finding.expected = absl::StrCat("run_start at or before the witnessed first touch at ", seen);
  finding.found = absl::StrFormat("run_start at %.0f ms, %.0f ms later", *run_start_ms,
                                  *run_start_ms - static_cast<double>(touch.touch_ms));
  return {finding};
}

Finding NoWitness() {
  return {
      .rule_id = "R-TIM-003",
      .severity = Severity::kWarning,
      .error_class = "first_touch:not_witnessed",
      .key = "run_start",
      .expected = "a first touch of the dataset, witnessed by the node",
      .found = "none",
      .section = "HPC rules, Timing",
      .remedy = "let the agent use fanotify (as root) or inotify; its step log says what failed"};
}

}  // namespace assay::rules
