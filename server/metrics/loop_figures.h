// The core's loop in figures: what it commits, how long that takes, and what it has before it. It
// is told on the core thread and asked on any; neither waits for the other, but for the moment in
// which a number is copied.

#ifndef SERVER_METRICS_LOOP_FIGURES_H_
#define SERVER_METRICS_LOOP_FIGURES_H_

#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/mutex.h"
#include "server/metrics/core_view.h"
#include "server/runtime/loop_observer.h"

namespace assay::metrics {

// Its LoopObserver is for the core thread; all else is thread-safe.
class LoopFigures final : public runtime::LoopObserver, public prometheus::Collectable {
 public:
  // What rules are told apart: of more, and of what is no rule's name, the label is kOtherRule. A
  // facility's round names its own rules, and nodes report findings.
  static constexpr size_t kRulesMax = 512;
  static constexpr char kOtherRule[] = "other";
  // A loop that has made no turn for so long does not answer; one that is well makes one a second.
  static constexpr absl::Duration kSilenceMax = absl::Seconds(10);
  // For so long a refused commit is what to expect of the next one.
  static constexpr absl::Duration kRefusalCounts = absl::Minutes(1);

  // `clock` must outlive this. Counters and histograms are made in `registry`, which must, too.
  LoopFigures(const Clock* clock, prometheus::Registry* registry);

  void Committed(const Commit& commit) override;
  void CommitRefused(const absl::Status& reason) override;
  void TurnEnded(const core::Core& core) override;

  // OK if a command that changes something would be answered, and durable. UNAVAILABLE with the
  // reason: the loop has made no turn for kSilenceMax, or none at all; or the disk was full at the
  // last commit, less than kRefusalCounts ago.
  absl::Status Readiness() const;

  // The newest view of the core, at most a second old while the loop is well.
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  template <typename Event>
  void Count(const Event&) {}
  void Count(const core::SubmissionCreated& event);
  void Count(const core::SubmissionClosed& event);
  void Count(const core::RunQueued& event);
  void Count(const core::RunJudged& event);
  void Count(const core::RunFailed& event);
  void Count(const core::RunCancelled& event);
  void Count(const core::AllocationLaunchFailed& event);
  void CountFindings(const std::vector<core::Finding>& findings);
  void NoteLag(const core::RunEventBatch& batch, const core::State& state);
  std::string RuleLabel(const std::string& rule_id);

  const Clock* const clock_;

  prometheus::Histogram& commit_seconds_;
  prometheus::Histogram& commit_commands_;
  prometheus::Histogram& lag_seconds_;
  prometheus::Counter& events_;
  prometheus::Counter& run_events_;
  prometheus::Counter& refusals_;
  prometheus::Counter& submissions_created_;
  prometheus::Family<prometheus::Counter>& submissions_ended_;
  prometheus::Counter& runs_queued_;
  prometheus::Family<prometheus::Counter>& runs_ended_;
  prometheus::Counter& launch_failures_;
  prometheus::Family<prometheus::Counter>& findings_;

  // For the core thread alone.
  std::set<std::string> rules_;                  // that are told apart so far
  std::map<std::string, double> lag_by_worker_;  // seconds
  std::optional<MonoTime> viewed_at_;

  mutable Mutex mutex_;
  std::shared_ptr<const CoreView> view_ ABSL_GUARDED_BY(mutex_);
  std::optional<MonoTime> turned_at_ ABSL_GUARDED_BY(mutex_);
  std::optional<MonoTime> refused_at_ ABSL_GUARDED_BY(mutex_);  // none: not since the last commit
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace assay::metrics

#endif  // SERVER_METRICS_LOOP_FIGURES_H_
