// All that was ever committed in a simulation, outside of what is simulated: it outlives every
// crash. Judges each event as it comes, by what a reader of the log may rely on.

#ifndef TESTS_SIM_HISTORY_H_
#define TESTS_SIM_HISTORY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "gtest/gtest.h"

#include "server/core/apply.h"
#include "server/core/core.h"
#include "server/core/fabric.h"
#include "server/core/node_checks.h"

namespace assay::sim {

// What was met in all seeds together: a simulation that never meets a thing proves nothing of it.
struct Coverage {
  std::map<size_t, int64_t> answered;  // commands by kind, answered well
  std::map<size_t, int64_t> events;    // by kind
  std::map<std::string, int64_t> met;  // troubles and their outcomes, by name
};

class History {
 public:
  History(Coverage* coverage, const core::Policy& policy) : coverage_(*coverage), policy_(policy) {}

  // The outcome is on the disk.
  void Committed(const core::Outcome& outcome, int64_t now_us) {
    for (const core::RecordedEvent& event : outcome.events) {
      ASSERT_EQ(event.seq, state_.last_seq + 1);
      ++coverage_.events[event.event.index()];
      std::visit([&](const auto& what) { Check(what, now_us); }, event.event);
      const std::optional<core::RunState> run = StateOf(event.run);
      const std::optional<core::SubmissionState> submission = StateOf(event.submission);
      core::Apply(event, &state_);
      if (run.has_value() && IsTerminal(*run)) {
        EXPECT_EQ(StateOf(event.run), run) << event.run;
      }
      if (submission.has_value() && IsTerminal(*submission)) {
        EXPECT_EQ(StateOf(event.submission), submission) << event.submission;
      }
    }
    if (!outcome.events.empty()) CheckGangs();
  }

  // A call of the worker was handled.
  void Heard(const std::string& worker, int64_t now_us) { last_heard_us_[worker] = now_us; }

  // Everything, also what a coordinator has dropped from memory.
  const core::State& state() const { return state_; }

  // What a coordinator that starts now loads.
  core::State Alive() const {
    core::State alive = state_;
    core::DropAllRedundant(&alive);
    return alive;
  }

  // How often the tables of tokens and certificates had to change.
  int64_t credential_count() const { return credential_count_; }

  // Of an entry that is scored: instances that failed are left out of a throughput set.
  static void CheckCount(const core::Submission& submission, int64_t succeeded) {
    if (core::IsThroughput(submission.spec)) {
      EXPECT_GE(succeeded, submission.rules.required_run_count) << submission.id;
    } else {
      EXPECT_EQ(succeeded, submission.spec.run_count) << submission.id;
    }
  }

 private:
  template <typename E>
  void Check(const E&, int64_t) {}

  void Check(const core::RunAssigned& e, int64_t) {
    const core::Run& run = state_.runs.at(e.run);
    EXPECT_EQ(run.state, core::RunState::kQueued) << e.run;
    EXPECT_GT(e.generation, run.generation) << e.run;
    const core::Submission& submission = state_.submissions.at(run.submission);
    if (e.workers.size() > 1 && !core::IsThroughput(submission.spec)) {
      std::vector<std::string> nodes;
      for (const std::string& name : e.workers)
        nodes.push_back(core::NodeName(state_.workers.at(name)));
      EXPECT_EQ(submission.checked_gang, core::GangKey(nodes))
          << e.run << " gets nodes whose fabric has not been checked";
    }
    for (const std::string& name : e.workers) {
      const core::Worker& worker = state_.workers.at(name);
      EXPECT_TRUE(core::IsChecked(submission, worker))
          << name << " gets " << e.run << " without a pre-flight";
      EXPECT_EQ(worker.state, core::WorkerState::kAlive) << name << " gets " << e.run;
      EXPECT_FALSE(worker.is_drain_requested) << name << " gets " << e.run;
      EXPECT_TRUE(worker.run.is_none()) << name << " gets " << e.run << " and has " << worker.run;
    }
    for (const std::string& name : e.cached_workers)
      EXPECT_EQ(std::count(e.workers.begin(), e.workers.end(), name), 1) << name;
    if (!e.cached_workers.empty()) ++coverage_.met["a run on a node that has its dataset"];
  }

  void Check(const core::CacheOrderRetried& e, int64_t) {
    bool is_waiting = false;
    for (const core::CacheOrder& order : state_.workers.at(e.worker).cache_orders)
      is_waiting = is_waiting || (order.number == e.number && order.retry_at_us != 0);
    EXPECT_TRUE(is_waiting) << e.worker << " is told again what does not wait for it";
  }

  void Check(const core::RunEventsAppended& e, int64_t) {
    const core::RunNode& node = state_.runs.at(e.run).nodes.at(static_cast<size_t>(e.node_rank));
    EXPECT_EQ(e.first_seq, node.last_seq + 1) << e.run;
  }

  void Check(const core::RunJudged& e, int64_t) {
    EXPECT_EQ(StateOf(e.run), core::RunState::kUploading);
    EXPECT_TRUE(judged_.insert(e.run).second) << e.run << " has two verdicts";
  }

  void Check(const core::RunFailed& e, int64_t) {
    if (StateOf(e.run) != core::RunState::kUploading) return;
    EXPECT_TRUE(judged_.insert(e.run).second) << e.run << " has two verdicts";
    // A disk that is full for a minute must not cost a good run.
    EXPECT_EQ(e.reason.find("disk is full"), std::string::npos) << e.run << ": " << e.reason;
  }

  void Check(const core::SubmissionClosed& e, int64_t) {
    EXPECT_TRUE(closed_.insert(e.submission).second) << e.submission << " is closed twice";
    const core::Submission& submission = state_.submissions.at(e.submission);
    EXPECT_EQ(e.reason.find("disk is full"), std::string::npos) << e.submission << ": " << e.reason;
    if (e.state != core::SubmissionState::kValid) return;
    EXPECT_EQ(submission.state, core::SubmissionState::kChecking) << e.submission;
    int32_t succeeded = 0;
    for (const core::RunId id : submission.runs)
      succeeded += StateOf(id) == core::RunState::kSucceeded ? 1 : 0;
    CheckCount(submission, succeeded);
  }

  // Silence is measured by a clock that nobody sets.
  void Check(const core::WorkerStateChanged& e, int64_t now_us) {
    const bool is_lost = e.state == core::WorkerState::kLost;
    if (!is_lost && e.state != core::WorkerState::kSuspect) return;
    const int64_t least_us = is_lost ? policy_.lost_after_us : policy_.suspect_after_us;
    EXPECT_GE(now_us - last_heard_us_[e.worker], least_us / 100 * 85)
        << e.worker << " " << e.reason;
  }

  void Check(const core::WorkerRevoked& e, int64_t) {
    ++credential_count_;
    const auto it = state_.workers.find(e.worker);
    const int64_t before = it == state_.workers.end() ? 0 : it->second.certificate_generation;
    EXPECT_GT(e.certificate_generation, before) << e.worker;
  }

  void Check(const core::TokenCreated&, int64_t) { ++credential_count_; }

  void Check(const core::TokenRevoked& e, int64_t) {
    ++credential_count_;
    EXPECT_FALSE(state_.tokens.at(e.token).is_revoked) << e.token << " is used or revoked twice";
  }

  void Check(const core::DatasetRemoved& e, int64_t) {
    for (const auto& [id, submission] : state_.submissions)
      EXPECT_TRUE(submission.spec.dataset != e.dataset || IsTerminal(submission.state))
          << id << " loses its dataset";
  }

  // No worker serves two gangs, and every gang is whole.
  void CheckGangs() const {
    std::set<std::string> busy;
    for (const core::RunId id : state_.active) {
      const core::Run& run = state_.runs.at(id);
      const core::SubmissionSpec& spec = state_.submissions.at(run.submission).spec;
      ASSERT_EQ(static_cast<int32_t>(run.nodes.size()), spec.node_count) << id;
      for (const core::RunNode& node : run.nodes) {
        if (node.is_released) continue;  // its part is done; the run is being judged
        ASSERT_TRUE(busy.insert(node.worker).second) << node.worker << " serves two gangs";
        ASSERT_EQ(state_.workers.at(node.worker).run, id);
      }
    }
  }

  std::optional<core::RunState> StateOf(core::RunId id) const {
    const auto it = state_.runs.find(id);
    return it == state_.runs.end() ? std::nullopt : std::make_optional(it->second.state);
  }
  std::optional<core::SubmissionState> StateOf(core::SubmissionId id) const {
    const auto it = state_.submissions.find(id);
    return it == state_.submissions.end() ? std::nullopt : std::make_optional(it->second.state);
  }

  Coverage& coverage_;
  const core::Policy policy_;
  core::State state_;
  std::set<core::RunId> judged_;
  std::set<core::SubmissionId> closed_;
  std::map<std::string, int64_t> last_heard_us_;  // by worker
  int64_t credential_count_ = 0;
};

}  // namespace assay::sim

#endif  // TESTS_SIM_HISTORY_H_
