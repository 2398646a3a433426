#include "server/metrics/loop_figures.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include "common/rules/finding.h"

namespace assay::metrics {
namespace {

constexpr absl::Duration kViewInterval = absl::Seconds(1);
constexpr size_t kRuleBytesMax = 64;

// A commit to an SSD takes a tenth of a millisecond, to a busy disk a tenth of a second.
constexpr double kCommitSeconds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                     0.05,   0.1,     0.25,   0.5,   1,      2.5,   5};
// Up to CoreThreadOptions::batch_max.
constexpr double kCommitCommands[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
constexpr double kLagSeconds[] = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300};

prometheus::Histogram& AddHistogram(prometheus::Registry* registry, const char* name,
                                    const char* help, absl::Span<const double> buckets) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(*registry).Add(
      {}, prometheus::Histogram::BucketBoundaries(buckets.begin(), buckets.end()));
}

prometheus::Family<prometheus::Counter>& AddCounters(prometheus::Registry* registry,
                                                     const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(*registry);
}

prometheus::Counter& AddCounter(prometheus::Registry* registry, const char* name,
                                const char* help) {
  return AddCounters(registry, name, help).Add({});
}

// What may be a label: others' text may hold what makes a whole scrape unreadable.
bool IsRuleName(const std::string& rule_id) {
  return !rule_id.empty() && rule_id.size() <= kRuleBytesMax &&
         std::all_of(rule_id.begin(), rule_id.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

LoopFigures::LoopFigures(const Clock* clock, prometheus::Registry* registry)
    : clock_(clock),
      commit_seconds_(AddHistogram(registry, "assay_commit_duration_seconds",
                                   "How long transactions took until they were on stable storage.",
                                   kCommitSeconds)),
      commit_commands_(AddHistogram(registry, "assay_commit_batch_commands",
                                    "Commands that were handled in one transaction (group commit).",
                                    kCommitCommands)),
      lag_seconds_(AddHistogram(registry, "assay_event_lag_seconds",
                                "How long the first event of each batch from a node had waited "
                                "there, by the node's clock as corrected.",
                                kLagSeconds)),
      events_(AddCounter(registry, "assay_events_committed_total",
                         "Events that the log of events has got.")),
      run_events_(AddCounter(registry, "assay_run_events_committed_total",
                             "Log lines and other events of runs that were kept.")),
      refusals_(AddCounter(registry, "assay_commits_refused_total",
                           "Transactions that the store refused; nothing of them has happened.")),
      submissions_created_(AddCounter(registry, "assay_submissions_created_total",
                                      "Entries that were submitted; not the imported ones.")),
      submissions_ended_(AddCounters(registry, "assay_submissions_ended_total",
                                     "Entries that have ended, by how.")),
      runs_queued_(AddCounter(registry, "assay_runs_queued_total",
                              "Runs that were queued: those of new entries, and replacements.")),
      runs_ended_(AddCounters(registry, "assay_runs_ended_total", "Runs that have ended, by how.")),
      launch_failures_(AddCounter(registry, "assay_allocation_failures_total",
                                  "Times that the launcher could not provide nodes.")),
      findings_(AddCounters(registry, "assay_rule_findings_total",
                            "Findings of verdicts on runs and entries, by rule and severity.")) {
  using core::RunState;
  using core::SubmissionState;
  for (const RunState state : {RunState::kSucceeded, RunState::kFailed, RunState::kCancelled})
    runs_ended_.Add({{"state", StateLabel(ToString(state))}});
  for (const SubmissionState state :
       {SubmissionState::kValid, SubmissionState::kInvalid, SubmissionState::kCancelled})
    submissions_ended_.Add({{"state", StateLabel(ToString(state))}});
}

void LoopFigures::Committed(const Commit& commit) {
  commit_seconds_.Observe(absl::ToDoubleSeconds(commit.duration));
  commit_commands_.Observe(static_cast<double>(commit.command_count));
  events_.Increment(static_cast<double>(commit.outcome.events.size()));
  for (const core::RecordedEvent& event : commit.outcome.events)
    std::visit([this](const auto& what) { Count(what); }, event.event);
  for (const core::RunEventBatch& batch : commit.outcome.run_events) {
    run_events_.Increment(static_cast<double>(batch.events.size()));
    NoteLag(batch, commit.state);
  }
  MutexLock lock(&mutex_);
  refused_at_.reset();
}

void LoopFigures::CommitRefused(const absl::Status& reason) {
  refusals_.Increment();
  // Other errors are of one command, and the next ones fare better.
  if (!absl::IsResourceExhausted(reason)) return;
  MutexLock lock(&mutex_);
  refused_at_ = clock_->Mono();
  refusal_ = reason;
}

void LoopFigures::TurnEnded(const core::Core& core) {
  const MonoTime now = clock_->Mono();
  std::shared_ptr<CoreView> view;
  if (!viewed_at_.has_value() || now - *viewed_at_ >= kViewInterval) {
    viewed_at_ = now;
    view = std::make_shared<CoreView>(ViewOf(core));
    std::map<std::string, double> lags;
    for (WorkerView& worker : view->fleet) {
      const auto it = lag_by_worker_.find(worker.name);
      if (!worker.is_executing || it == lag_by_worker_.end()) continue;
      worker.lag_seconds = it->second;
      lags.insert(*it);
    }
    lag_by_worker_ = std::move(lags);  // of those that hold no run nothing is kept
  }
  MutexLock lock(&mutex_);
  turned_at_ = now;
  if (view != nullptr) view_ = std::move(view);
}

absl::Status LoopFigures::Readiness() const {
  const MonoTime now = clock_->Mono();
  MutexLock lock(&mutex_);
  if (!turned_at_.has_value())
    return absl::UnavailableError("the core has not made its first turn");
  if (now - *turned_at_ > kSilenceMax) {
    return absl::UnavailableError(
        absl::StrCat("the core has made no turn for ", absl::FormatDuration(now - *turned_at_),
                     ": it waits for the disk of data_directory, or hangs"));
  }
  if (refused_at_.has_value() && now - *refused_at_ < kRefusalCounts)
    return absl::UnavailableError(
        absl::StrCat("the last commit was refused: ", refusal_.message()));
  return absl::OkStatus();
}

std::vector<prometheus::MetricFamily> LoopFigures::Collect() const {
  std::shared_ptr<const CoreView> view;
  {
    MutexLock lock(&mutex_);
    view = view_;
  }
  Families families = ToFamilies(view == nullptr ? CoreView() : *view);
  families.push_back(OneGauge("assay_ready",
                              "1 if the coordinator is ready, as /readyz says; else 0.",
                              Readiness().ok() ? 1 : 0));
  return families;
}

void LoopFigures::Count(const core::SubmissionCreated& event) {
  submissions_created_.Increment();
  runs_queued_.Increment(event.spec.run_count);
}
void LoopFigures::Count(const core::SubmissionClosed& event) {
  submissions_ended_.Add({{"state", StateLabel(ToString(event.state))}}).Increment();
  CountFindings(event.findings);
}
void LoopFigures::Count(const core::RunQueued&) {
  runs_queued_.Increment();
}
void LoopFigures::Count(const core::RunJudged& event) {
  runs_ended_.Add({{"state", StateLabel(ToString(core::RunState::kSucceeded))}}).Increment();
  CountFindings(event.facts.findings);
}
void LoopFigures::Count(const core::RunFailed&) {
  runs_ended_.Add({{"state", StateLabel(ToString(core::RunState::kFailed))}}).Increment();
}
void LoopFigures::Count(const core::RunCancelled&) {
  runs_ended_.Add({{"state", StateLabel(ToString(core::RunState::kCancelled))}}).Increment();
}
void LoopFigures::Count(const core::AllocationLaunchFailed&) {
  launch_failures_.Increment();
}

void LoopFigures::CountFindings(const std::vector<core::Finding>& findings) {
  for (const core::Finding& finding : findings) {
    findings_
        .Add({{"rule", RuleLabel(finding.rule_id)},
              {"severity", std::string(rules::SeverityName(finding.severity))}})
        .Increment();
  }
}

std::string LoopFigures::RuleLabel(const std::string& rule_id) {
  if (rules_.count(rule_id) != 0) return rule_id;
  if (rules_.size() >= kRulesMax || !IsRuleName(rule_id)) return kOtherRule;
  rules_.insert(rule_id);
  return rule_id;
}

void LoopFigures::NoteLag(const core::RunEventBatch& batch, const core::State& state) {
  const auto run = state.runs.find(batch.run);
  if (batch.events.empty() || run == state.runs.end()) return;
  const core::RunEvent& first = batch.events.front();
  const size_t rank = static_cast<size_t>(first.node_rank);
  if (rank >= run->second.nodes.size()) return;
  const core::RunNode& node = run->second.nodes[rank];
  const int64_t sent_us = first.wall_us - node.clock_offset_us;
  const double lag =
      absl::ToDoubleSeconds(absl::Microseconds(std::max<int64_t>(first.receive_us - sent_us, 0)));
  lag_seconds_.Observe(lag);
  lag_by_worker_[node.worker] = lag;
}

}  // namespace assay::metrics
