// A node in the simulation: the real decisions of the agent, a disk that survives its crashes, and
// a trainer that runs on without it.

#ifndef TESTS_SIM_SIM_WORKER_H_
#define TESTS_SIM_SIM_WORKER_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "common/sha256.h"
#include "tests/sim/network.h"
#include "tests/sim/sim_server.h"
#include "worker/agent/machine.h"

namespace assay::sim {

// Of an order for the cache; it passes.
inline constexpr char kHeldByRun[] = "it is held by a run";

class SimWorker {
 public:
  // A run as the node's disk holds it.
  struct DiskRun {
    int32_t node_rank = 0;
    std::string result_name;
    bool is_started = false;
    bool is_ready = false;  // all is done before the ranks' start, for which it needs leave
    bool has_leave = false;
    std::vector<std::string> lines;
    std::optional<agent::StepExit> exit;
  };

  SimWorker(Network* network, SimServer* server, std::string name)
      : network_(*network), server_(*server), name_(std::move(name)) {
    Start();
    Tick();
  }

  // Everything that trainers ever wrote here, also after its files were deleted.
  const std::map<agent::RunKey, DiskRun>& history() const { return history_; }
  // Events that the coordinator has acknowledged.
  const std::map<agent::RunKey, int64_t>& acknowledged() const { return acknowledged_; }

  const std::string& name() const { return name_; }
  // Its certificate was refused: it needs an enrolment token.
  bool is_refused() const { return is_refused_; }

  // Has got an enrolment token and asks for a certificate.
  void Enrol(const std::string& secret_sha256) {
    network_.Send([this, secret_sha256] {
      // The certificate is signed when the request arrives, and given once the token is used up.
      const int64_t generation = server_.CertificateGeneration(name_);
      server_.Receive({name_, core::RedeemEnrolment{secret_sha256, name_}},
                      [this, generation](const absl::StatusOr<core::Reply>& reply) {
                        if (!reply.ok()) return;
                        network_.Send([this, generation] {
                          certificate_generation_ = std::max(certificate_generation_, generation);
                          is_refused_ = false;
                        });
                      });
    });
  }

 private:
  void Start() {
    ++incarnation_;
    std::map<agent::RunKey, agent::HeldRun> held;
    for (const auto& [key, run] : disk_)
      held[key].is_started = run.is_started;
    state_ = agent::Restore(std::move(held), fences_);
    is_up_ = true;
    is_leaving_ = false;
    caching_ = 0;  // it ended with the agent
    for (const auto& [key, run] : disk_)
      Observe(key);
    Take(agent::SyncFailed{});
  }

  void Crash() {
    is_up_ = false;
    ++call_;  // what is under way finds nobody
    const bool is_long = network_.Percent(network_.troubles.long_silence_percent);
    const int64_t away_us = is_long ? 20 * kMinute : kSecond * (1 + network_.Below(60));
    network_.After(away_us, [this] { Start(); });
  }

  void Tick() {
    Take(agent::Tick{});
    if (is_up_ && !is_leaving_ && network_.Permille(network_.troubles.agent_leave_permille))
      Leave();
    network_.After(3 * kSecond, [this] { Tick(); });
  }

  // The service is stopped, and started again a little later.
  void Leave() {
    is_leaving_ = true;
    Take(agent::LeaveRequested{});
    network_.After(kSecond * (1 + network_.Below(60)), [this, incarnation = incarnation_] {
      if (is_up_ && incarnation == incarnation_) Crash();
    });
  }

  core::Command Signed(core::CommandBody body) const {
    return {name_, std::move(body), certificate_generation_};
  }

  void Refused(const absl::Status& status) {
    if (absl::IsUnauthenticated(status)) is_refused_ = true;
  }

  void Take(const agent::Input& input) {
    if (!is_up_) return;
    if (network_.Permille(network_.troubles.agent_crash_permille)) return Crash();
    for (const agent::Action& action : agent::Advance(input, &state_)) {
      if (!is_up_) return;
      std::visit([this](const auto& what) { Do(what); }, action);
    }
    fences_ = state_.fences;
  }

  void Do(const agent::StartStep& start) {
    const core::Desired& desired = orders_[start.key];
    DiskRun& run = disk_[start.key];
    if (run.is_started) return;
    EXPECT_EQ(caching_, 0) << name_ << " copies to its cache while " << start.key.run << " starts";
    EXPECT_TRUE(started_.insert(start.key).second)
        << name_ << " starts " << start.key.run << " again";
    for (const auto& [key, other] : disk_)
      EXPECT_TRUE(key == start.key || !other.is_started || other.exit.has_value())
          << name_ << " runs two trainers";
    run.is_started = true;
    run.node_rank = desired.order->node_rank;
    run.result_name = absl::StrCat("result_", desired.order->run_number, ".txt");
    const bool fails = network_.Percent(network_.troubles.trainer_failure_percent);
    constexpr int kCodes[] = {4, 137, 139};
    const int line_count = 3 + static_cast<int>(network_.Below(10));
    const int code = fails ? kCodes[network_.Below(3)] : 0;
    if (!core::IsThroughput(desired.order->spec)) return Train(start.key, line_count, code);
    network_.After(kSecond * (1 + network_.Below(10)), [this, key = start.key, line_count, code] {
      const auto it = disk_.find(key);
      if (it == disk_.end() || it->second.exit.has_value()) return;
      it->second.is_ready = true;
      Observe(key);
      AwaitLeave(key, line_count, code);
    });
  }

  void AwaitLeave(const agent::RunKey& key, int line_count, int exit_code) {
    const auto it = disk_.find(key);
    if (it == disk_.end() || it->second.exit.has_value()) return;
    if (it->second.has_leave) return Train(key, line_count, exit_code);
    network_.After(kSecond, [=, this] { AwaitLeave(key, line_count, exit_code); });
  }

  void Do(const agent::GiveLeave& leave) {
    const auto it = disk_.find(leave.key);
    if (it != disk_.end()) it->second.has_leave = true;
  }

  // The trainer writes a line now and then, and ends.
  void Train(const agent::RunKey& key, int lines_left, int exit_code) {
    network_.After(kSecond * (1 + network_.Below(10)), [this, key, lines_left, exit_code] {
      const auto it = disk_.find(key);
      if (it == disk_.end() || it->second.exit.has_value()) return;
      if (lines_left == 0) return End(key, exit_code);
      it->second.lines.push_back(absl::StrCat(name_, " ", key.run, " ", it->second.lines.size()));
      history_[key] = it->second;
      Observe(key);
      Train(key, lines_left - 1, exit_code);
    });
  }

  void End(const agent::RunKey& key, int exit_code) {
    const auto it = disk_.find(key);
    if (it == disk_.end() || it->second.exit.has_value()) return;
    it->second.exit = agent::StepExit{exit_code, ""};
    history_[key] = it->second;
    Observe(key);
  }

  void Observe(const agent::RunKey& key) {
    const DiskRun& run = disk_.at(key);
    agent::RunObserved seen{key, run.is_started, static_cast<int64_t>(run.lines.size())};
    seen.exit = run.exit;
    seen.is_ready = run.is_ready;
    seen.is_spool_complete = run.exit.has_value();
    if (run.exit.has_value() && run.node_rank == 0 && run.is_started)
      seen.artifacts = {run.result_name};
    Take(seen);
  }

  void Do(const agent::StopStep& stop) {
    disk_[stop.key];  // a step that never started leaves its end, too
    network_.After(kSecond, [this, key = stop.key] { End(key, 9); });
  }

  // Some never answer; some find something.
  void Do(const agent::StartCheck& check) {
    if (network_.Percent(network_.troubles.check_failure_percent) && network_.Below(2) == 0) return;
    const bool fails = network_.Percent(network_.troubles.check_failure_percent);
    network_.After(kSecond * (1 + network_.Below(20)),
                   [this, number = check.number, fails, incarnation = incarnation_] {
                     if (incarnation == incarnation_)
                       Take(agent::CheckEnded{number, fails ? "bad" : "good"});
                   });
  }

  void Do(const agent::StopCheck&) {}

  // Goes on from where it was stopped, if it was. Some fail for good, some for a while.
  void Do(const agent::StartCaching& start) {
    caching_ = start.number;
    const bool fails = network_.Percent(network_.troubles.check_failure_percent);
    network_.After(kSecond * (1 + network_.Below(40)), [this, number = start.number, fails,
                                                        incarnation = incarnation_] {
      if (incarnation != incarnation_ || caching_ != number) return;
      caching_ = 0;
      if (!fails) is_cached_ = caching_action_ != core::CacheAction::kEvict;
      const bool may_pass = network_.Below(2) == 0;
      Take(agent::CacheSeen{number, true, !fails ? "" : may_pass ? kHeldByRun : "no space"});
    });
  }

  void Do(const agent::StopCaching&) { caching_ = 0; }

  core::PreflightReport ReportOf(const agent::Status& status) {
    core::PreflightReport report{.number = status.check,
                                 .is_done = status.check_result.has_value()};
    if (!report.is_done) return report;
    const bool is_bad = *status.check_result == "bad";
    if (const auto& part = checks_[status.check].fabric; part.has_value()) {
      if (part->rank > 0) return report;
      report.fabric.emplace();
      if (is_bad) report.fabric->absent_ranks = {1};
      if (!is_bad) report.fabric->links.assign(static_cast<size_t>(part->node_count), {2, 10});
      return report;
    }
    report.checks = {{.check = "memory",
                      .is_measured = true,
                      .value = 10,
                      .unit = "GB/s",
                      .problem = is_bad ? "it burns" : ""}};
    return report;
  }

  void Do(const agent::ForgetRun& forget) { disk_.erase(forget.key); }

  void Do(const agent::Synchronize& synchronize) {
    const int64_t call = ++call_;
    core::Synchronize command{.worker = name_};
    command.description.incarnation = absl::StrCat("i", incarnation_);
    command.description.capabilities.rendezvous_address = name_ + ":1";
    const agent::Status& status = synchronize.status;
    command.report.phase = static_cast<core::WorkerPhase>(status.phase);
    command.report.generation = status.key.generation;
    command.report.exit_code = status.exit.code;
    command.report.is_ready = status.is_ready;
    command.report.has_leave_to_start = status.has_leave_to_start;
    command.report.preflight = ReportOf(status);
    command.description.capabilities.cache_bytes = 1;
    command.report.cache =
        core::CacheReport{.number = status.cache_order,
                          .is_done = status.is_cache_done,
                          .problem = status.is_cache_done ? *status.cache_report : ""};
    command.report.cache->is_temporary = command.report.cache->problem == kHeldByRun;
    if (is_cached_)
      command.report.cache->datasets = {
          {.digest = core::testing::SomeDataset().digest, .files = 1, .files_total = 1}};
    command.is_leaving = status.is_leaving;
    command.poll_timeout_us = status.is_leaving ? 0 : 20 * kSecond;
    if (!status.key.run.empty()) command.report.run = *core::ParseRunId(status.key.run);
    network_.Send([this, call, sent = Signed(command)] {
      server_.Receive(
          sent,
          [this, call](const absl::StatusOr<core::Reply>& reply) {
            network_.Send([this, call, reply] { Answered(call, reply); });
          },
          [this, call] { return is_up_ && call == call_; });
    });
    network_.After(25 * kSecond, [this, call] {
      if (call == call_) Take(agent::SyncFailed{});
    });
  }

  void Answered(int64_t call, const absl::StatusOr<core::Reply>& reply) {
    if (!reply.ok()) return Refused(reply.status());
    if (call != call_ || !is_up_) return;
    const core::Desired& desired = std::get<core::SynchronizeReply>(*reply).desired;
    agent::Desired wanted{static_cast<agent::Order>(desired.action), {}, ""};
    if (desired.action == core::DesiredAction::kCheck) {
      wanted.key.generation = desired.generation;
      checks_[desired.generation] = *desired.checks;
    } else if (desired.action != core::DesiredAction::kIdle)
      wanted.key = {desired.run.ToString(), desired.generation};
    wanted.may_start = desired.may_start;
    if (desired.cache.has_value()) {
      wanted.cache_order = desired.cache->number;
      caching_action_ = desired.cache->action;
    }
    if (desired.order.has_value()) orders_[wanted.key] = desired;
    Take(agent::SyncReply{wanted});
  }

  void Do(const agent::SendEvents& send) {
    const DiskRun& run = disk_.at(send.key);
    core::AppendRunEvents command{
        *core::ParseRunId(send.key.run), send.key.generation, run.node_rank, {}, name_};
    for (int64_t seq = send.first_seq; seq <= send.last_seq; ++seq)
      command.events.push_back({.seq = seq, .text = run.lines[static_cast<size_t>(seq - 1)]});
    network_.Send([this, key = send.key, sent = Signed(command)] {
      server_.Receive(sent, [this, key](const absl::StatusOr<core::Reply>& reply) {
        if (!reply.ok()) return;  // a gap: the spool is sent again from what is acknowledged
        const int64_t durable_seq = std::get<core::AppendReply>(*reply).durable_seq;
        network_.Send([this, key, durable_seq] {
          acknowledged_[key] = std::max(acknowledged_[key], durable_seq);
          Take(agent::EventsAcked{key, durable_seq});
        });
      });
    });
  }

  void Do(const agent::UploadArtifacts& upload) {
    for (const std::string& file_name : upload.file_names) {
      const agent::UploadedFile file{file_name, Sha256Hex(upload.key.run), 10};
      const core::RecordArtifact record{*core::ParseRunId(upload.key.run),
                                        upload.key.generation,
                                        {file.file_name, file.sha256, 10},
                                        name_};
      network_.Send([this, key = upload.key, file, record] { Upload(key, file, record); });
    }
  }

  // Asks before the bytes are taken, and records the artifact when they are there.
  void Upload(const agent::RunKey& key, const agent::UploadedFile& file,
              const core::RecordArtifact& record) {
    server_.Receive(Signed(core::AuthorizeUpload{record}), [=, this](const auto& reply) {
      if (!reply.ok()) return;
      network_.After(network_.Delay(kSecond), [=, this] {
        server_.Receive(Signed(record), [=, this](const auto& recorded) {
          if (!recorded.ok()) return;
          network_.Send([=, this] { Take(agent::ArtifactUploaded{key, file}); });
        });
      });
    });
  }

  Network& network_;
  SimServer& server_;
  const std::string name_;

  // On disk.
  std::map<agent::RunKey, DiskRun> disk_;
  std::map<std::string, int64_t> fences_;
  int64_t certificate_generation_ = 0;
  bool is_refused_ = false;

  // In memory.
  bool is_up_ = false;
  bool is_leaving_ = false;
  int incarnation_ = 0;
  int64_t call_ = 0;
  agent::MachineState state_;
  int64_t caching_ = 0;  // the order for the node cache that goes on
  core::CacheAction caching_action_ = core::CacheAction::kStage;  // of the last
  bool is_cached_ = false;                                        // on disk
  std::map<agent::RunKey, core::Desired> orders_;
  std::map<int64_t, core::PreflightOrder> checks_;  // by number

  // For the checks.
  std::set<agent::RunKey> started_;
  std::map<agent::RunKey, DiskRun> history_;
  std::map<agent::RunKey, int64_t> acknowledged_;
};

}  // namespace assay::sim

#endif  // TESTS_SIM_SIM_WORKER_H_
