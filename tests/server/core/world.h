// A core with verbs: what submitters, workers and time do to it, one batch each.

#ifndef TESTS_SERVER_CORE_WORLD_H_
#define TESTS_SERVER_CORE_WORLD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "server/core/apply.h"
#include "server/core/core.h"

namespace assay::core::testing {

inline constexpr int64_t kSecond = 1'000'000;
inline constexpr int64_t kStart = 1'700'000'000 * kSecond;
inline constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

inline Dataset SomeDataset() {
  return {.id = "cosmo32",
          .benchmark = "cosmoflow",
          .path = "/data/cosmo32",
          .digest = "d1",
          .train_sample_count = 1'290'240,  // fill the batches of 1 to 10 ranks, and of 1024
          .eval_sample_count = 1'290'240,
          .compression = "gzip",
          .parameters = {{"cube_edge", "32"}}};
}

inline SubmissionSpec SomeSpec() {
  SubmissionSpec spec;
  spec.organization = "lab";
  spec.system = "sys";
  spec.benchmark = "cosmoflow";
  spec.division = "closed";
  spec.round = "hpc-3.0.0";
  spec.dataset = "cosmo32";
  spec.node_count = 1;
  spec.run_count = 1;
  spec.workload = TrainerWorkload{.backend = "onednn"};
  return spec;
}

inline CreateSubmission Creation(const SubmissionSpec& spec, const std::string& request_id) {
  CreateSubmission command{.request_id = request_id, .spec = spec};
  command.rules.digest = "rules";
  for (int k = 1; k <= spec.run_count + spec.replacement_count_max; ++k)
    command.seeds.push_back(1000 + k);
  return command;
}

inline CreateToken SomeToken() {
  return CreateToken{.request_id = "t",
                     .kind = TokenKind::kAccess,
                     .role = "submitter",
                     .principal = "bob",
                     .organization = "lab",
                     .secret_sha256 = std::string(64, '1'),
                     .expires_at_us = kStart + 100 * kSecond};
}

class World {
 public:
  explicit World(Policy policy = {}) : core_(WithSecret(std::move(policy)), State{}, kStart) {
    CHECK(Do(AddDataset{SomeDataset()}).ok());
  }
  // A world whose outcomes are seen from the first on.
  explicit World(std::function<void(const Outcome&, const State&)> observer, Policy policy = {})
      : on_outcome(std::move(observer)), core_(WithSecret(std::move(policy)), State{}, kStart) {
    CHECK(Do(AddDataset{SomeDataset()}).ok());
  }

  // One command in a batch of its own; what came of it is in outcome().
  absl::StatusOr<Reply> Do(CommandBody body, const std::string& principal = "alice") {
    std::vector<Command> commands;
    commands.push_back(Command{principal, std::move(body)});
    Handle(std::move(commands));
    return outcome_.replies[0];
  }

  void Handle(std::vector<Command> commands) {
    for (const Command& command : commands)
      Restore(command);
    outcome_ = core_.Handle(std::move(commands), now_us_);
    for (const RecordedEvent& event : outcome_.events)
      log_.push_back(event);
    if (on_outcome) on_outcome(outcome_, core_.state());
    for (const auto& [id, submission] : core_.state().submissions)
      stored_[id].submission = submission;
    for (auto& [id, stored] : stored_) {
      if (!core_.state().submissions.contains(id)) continue;
      stored.runs.clear();
      for (const RunId run : stored.submission.runs)
        stored.runs.push_back(core_.state().runs.at(run));
    }
    core_.DropRedundant();
  }

  // A submission that has left memory comes back for a command about it, as from the store.
  void Restore(const Command& command) {
    const std::optional<Core::Target> missing = core_.Missing(command);
    if (!missing.has_value()) return;
    if (const auto* id = std::get_if<SubmissionId>(&*missing); id != nullptr)
      core_.Restore(stored_.at(*id));
  }

  void Wait(int64_t duration_us) {
    now_us_ += duration_us;
    Handle({});
  }

  SubmissionId Submit(SubmissionSpec spec = SomeSpec()) {
    const auto reply = Do(Creation(spec, absl::StrCat("request-", ++request_count_)));
    CHECK_OK(reply.status());
    return std::get<SubmissionReply>(*reply).id;
  }

  // A submission of one run over w0 and w1, which both execute it: run 1.
  SubmissionId SubmitGang(int32_t replacement_count_max = 0) {
    SubmissionSpec spec = SomeSpec();
    spec.node_count = 2;
    spec.replacement_count_max = replacement_count_max;
    for (const char* worker : {"w0", "w1"})
      CHECK_OK(Sync(worker).status());
    const SubmissionId id = Submit(spec);
    for (const char* worker : {"w0", "w1"})
      Executing(worker, RunId{1});
    return id;
  }

  // A worker calls; the result is what it should do.
  absl::StatusOr<Desired> Sync(const std::string& worker, WorkerReport report = {}) {
    Synchronize call{.worker = worker, .report = std::move(report)};
    call.description = Describe(worker);
    call.is_leaving = is_leaving;
    if (const auto it = clocks.find(worker); it != clocks.end()) {
      call.clock_offset_us = it->second.offset_us;
      call.clock_offset_uncertainty_us = it->second.uncertainty_us;
    }
    const absl::StatusOr<Reply> reply = Do(call, worker);
    if (!reply.ok()) return reply.status();
    return std::get<SynchronizeReply>(*reply).desired;
  }

  Desired Executing(const std::string& worker, RunId run, int64_t generation = 1) {
    return *Sync(worker, {WorkerPhase::kExecuting, run, generation, 0, "", {}});
  }
  Desired Finished(const std::string& worker, RunId run, int exit_code = 0) {
    return *Sync(worker, {WorkerPhase::kFinished, run, 1, exit_code, "", {}});
  }

  // Every worker of the gang executes, finishes well and is released; the log is judged.
  void Succeed(RunId run, bool is_converged = true) {
    const std::vector<RunNode> nodes = this->run(run).nodes;
    for (const RunNode& node : nodes)
      Executing(node.worker, run);
    for (const RunNode& node : nodes)
      Finished(node.worker, run);
    RunFacts facts;
    facts.is_compliant = is_converged;
    facts.is_converged = is_converged;
    CHECK(Do(LogChecked{run, facts, ""}, "coordinator").ok());
    for (const RunNode& node : nodes)
      CHECK(Sync(node.worker).ok());
  }

  WorkerDescription Describe(const std::string& worker) const {
    WorkerDescription description;
    const auto it = incarnations.find(worker);
    description.incarnation = it == incarnations.end() ? "i1" : it->second;
    const auto wanted = labels.find(worker);
    if (wanted != labels.end()) description.labels = wanted->second;
    description.capabilities.rendezvous_address = worker + ":7000";
    description.capabilities.backends = {"onednn", "reference"};
    if (const auto cache = caches.find(worker); cache != caches.end())
      description.capabilities.cache_bytes = cache->second;
    return description;
  }

  const Submission& submission(SubmissionId id) const { return core_.state().submissions.at(id); }
  const Run& run(RunId id) const { return core_.state().runs.at(id); }
  const Worker& worker(const std::string& name) const { return core_.state().workers.at(name); }
  const State& state() const { return core_.state(); }
  const Outcome& outcome() const { return outcome_; }
  const std::vector<RecordedEvent>& log() const { return log_; }
  Core& core() { return core_; }
  int64_t now_us() const { return now_us_; }

  // How the submission ended, from the log: its row has left memory.
  const SubmissionClosed* Closed(SubmissionId id) const {
    for (const RecordedEvent& event : log_) {
      const auto* closed = std::get_if<SubmissionClosed>(&event.event);
      if (closed != nullptr && closed->submission == id) return closed;
    }
    return nullptr;
  }

  // The log applied to nothing.
  State Fold() const {
    State state;
    for (const RecordedEvent& event : log_)
      Apply(event, &state);
    DropAllRedundant(&state);
    return state;
  }

  struct Clock {
    int64_t offset_us = 0;
    int64_t uncertainty_us = 0;
  };
  std::map<std::string, Clock> clocks;              // of workers; unmeasured where there is none
  std::map<std::string, std::string> incarnations;  // by worker; "i1" where there is none
  std::map<std::string, std::map<std::string, std::string>> labels;
  std::map<std::string, int64_t> caches;  // of workers that have one: its quota
  bool is_leaving = false;
  // Sees each outcome while the state still holds all that it touched: where a store commits.
  std::function<void(const Outcome&, const State&)> on_outcome;

 private:
  static Policy WithSecret(Policy policy) {
    policy.secret = "secret";
    return policy;
  }

  int64_t now_us_ = kStart;
  int request_count_ = 0;
  Outcome outcome_;
  std::vector<RecordedEvent> log_;
  std::map<SubmissionId, ClosedSubmission> stored_;
  Core core_;
};

}  // namespace assay::core::testing

#endif  // TESTS_SERVER_CORE_WORLD_H_
