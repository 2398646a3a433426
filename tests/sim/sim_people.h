// Those who call the coordinator: submitters, who repeat what they want until it is answered, and
// operators, who do whatever comes to their mind.

#ifndef TESTS_SIM_SIM_PEOPLE_H_
#define TESTS_SIM_SIM_PEOPLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "common/sha256.h"
#include "tests/server/core/world.h"
#include "tests/sim/network.h"
#include "tests/sim/sim_server.h"
#include "tests/sim/sim_worker.h"

namespace assay::sim {

// Wants some entries and some history filed, once each.
class SimSubmitters {
 public:
  SimSubmitters(Network* network, SimServer* server, int worker_count)
      : network_(*network), server_(*server) {
    Want("dataset", core::AddDataset{core::testing::SomeDataset()});
    for (int i = 0; i < kEntryCount; ++i)
      network_.After(kSecond * (10 + network_.Below(600)), [this, i, worker_count] {
        WantEntry(absl::StrCat("request-", i), worker_count);
      });
    for (int i = 0; i < kImportCount; ++i)
      network_.After(kSecond * (10 + network_.Below(600)), [this, i] { WantImport(i); });
  }

  static constexpr int kEntryCount = 6;
  static constexpr int kImportCount = 2;

  // True if all that was wanted has been answered.
  bool is_answered() const { return answered_.size() == 1 + kEntryCount + kImportCount; }
  // Entries and imports that were acknowledged.
  const std::set<core::SubmissionId>& ids() const { return ids_; }

 private:
  void WantEntry(const std::string& request_id, int worker_count) {
    core::SubmissionSpec spec = core::testing::SomeSpec();
    spec.node_count = 1 + static_cast<int32_t>(network_.Below(static_cast<uint32_t>(worker_count)));
    spec.run_count = 1 + static_cast<int32_t>(network_.Below(2));
    spec.replacement_count_max = static_cast<int32_t>(network_.Below(4));
    if (network_.Below(4) == 0) MakeThroughputSet(&spec, worker_count);
    if (network_.Percent(network_.troubles.oversize_percent)) MakeOversized(&spec);
    core::CreateSubmission command = core::testing::Creation(spec, request_id);
    if (ids_.size() >= 2 && network_.Below(3) == 0) {
      command.spec.borrowing = core::Borrowing{*ids_.begin(), *ids_.rbegin()};
      command.borrowing.emplace();
    }
    Want(request_id, command);
  }

  void WantImport(int number) {
    core::ImportSubmission command{.spec = core::testing::SomeSpec(),
                                   .source_path = absl::StrCat("history/", number)};
    command.rules.digest = "rules";
    if (network_.Below(2) == 0) command.score_minutes = 2.0;
    if (network_.Percent(network_.troubles.oversize_percent)) MakeOversized(&command.spec);
    for (int k = 0; k < 3; ++k) {
      core::ImportSubmission::ImportedRun run;
      run.log = {absl::StrCat("result_", k, ".txt"), Sha256Hex(absl::StrCat(number, k)), 10};
      command.runs.push_back(std::move(run));
    }
    Want(command.source_path, command);
  }

  void MakeThroughputSet(core::SubmissionSpec* spec, int worker_count) {
    spec->metric = std::string(core::kThroughput);
    spec->run_count = worker_count / spec->node_count;
    spec->replacement_count_max = 0;
  }

  static void MakeOversized(core::SubmissionSpec* spec) {
    for (int k = 0; k < 20; ++k)
      spec->hyperparameters.push_back(
          {absl::StrCat("key_", k), std::string(kRowBytesMax / 10, '1')});
  }

  // Repeats the request until it is answered for good.
  void Want(const std::string& name, const core::CommandBody& body) {
    if (answered_.count(name) > 0) return;
    network_.Send([this, name, body] {
      server_.Receive({"alice", body}, [this, name](const absl::StatusOr<core::Reply>& reply) {
        network_.Send([this, name, reply] { Answered(name, reply); });
      });
    });
    network_.After(5 * kSecond, [this, name, body] { Want(name, body); });
  }

  void Answered(const std::string& name, const absl::StatusOr<core::Reply>& reply) {
    // The server stops, has no room, or does not know the dataset yet.
    const bool is_passing = absl::IsUnavailable(reply.status()) ||
                            absl::IsResourceExhausted(reply.status()) ||
                            absl::IsNotFound(reply.status());
    if (is_passing) return;
    const auto* made = reply.ok() ? std::get_if<core::SubmissionReply>(&*reply) : nullptr;
    const int64_t number = made == nullptr ? 0 : made->id.number;
    auto [it, is_first] = answered_.emplace(name, number);
    // One that was refused as things stood (R-BOR-005) may be made when its repetition, sent before
    // the refusal came, finds them changed.
    if (absl::IsFailedPrecondition(reply.status())) refused_as_things_stood_.insert(name);
    if (!is_first && it->second == 0 && refused_as_things_stood_.contains(name)) {
      it->second = number;
      is_first = true;
    }
    EXPECT_EQ(it->second, number) << name << " was made twice, or after it was refused";
    if (!is_first || number == 0) return;
    EXPECT_TRUE(ids_.insert(made->id).second) << made->id << " was given out twice";
  }

  Network& network_;
  SimServer& server_;
  std::map<std::string, int64_t> answered_;  // request -> number of the submission; 0: refused
  std::set<std::string> refused_as_things_stood_;
  std::set<core::SubmissionId> ids_;
};

// Operators look at everything and interfere, until told to repair what they have done.
class SimOperators {
 public:
  using Workers = std::vector<std::unique_ptr<SimWorker>>;

  SimOperators(Network* network, SimServer* server, const Workers* workers,
               const SimSubmitters* submitters)
      : network_(*network), server_(*server), workers_(*workers), submitters_(*submitters) {
    network_.After(kSecond, [this] { Tick(); });
  }

 private:
  void Tick() {
    for (const auto& worker : workers_)
      if (worker->is_refused()) GiveToken(worker.get());
    if (network_.Permille(network_.troubles.interference_permille)) Interfere();
    if (network_.troubles.interference_permille == 0) Repair();
    Look();
    network_.After(kSecond * (1 + network_.Below(60)), [this] { Tick(); });
  }

  void Ask(core::CommandBody body, const SimServer::Callback& then = nullptr) {
    network_.Send([this, body = std::move(body), then] {
      server_.Receive({"operator", body}, [this, then](const absl::StatusOr<core::Reply>& reply) {
        if (then) network_.Send([then, reply] { then(reply); });
      });
    });
  }

  void Look() {
    const core::SubmissionId id = AnyEntry();
    switch (network_.Below(5)) {
      case 0:
        return Ask(core::ExplainSubmission{id});
      case 1:
        return Ask(core::PlanPlacement{core::testing::SomeSpec()});
      case 2:
        return Ask(core::ListWorkers{});
      case 3:
        return Ask(core::GetServerInfo{});
      default:
        return server_.Receive({std::string(core::kCoordinator), core::Tick{}}, nullptr);
    }
  }

  void Interfere() {
    const std::string worker = AnyWorker();
    core::Dataset spare = core::testing::SomeDataset();
    spare.id = "spare";
    switch (network_.Below(19)) {
      case 18:
        return Ask(core::RecordRefusal{{.principal = "mallory", .method = "m", .count = 2}});
      case 17:
        return Ask(core::LabelWorker{worker, {{"rack", "7"}}});
      case 16:
        return Ask(core::WithdrawSubmission{AnyEntry(), "a node was mis-cabled"});
      case 13:
        return Ask(
            core::SaveView{{.name = network_.Below(2) == 0 ? "fast" : "slow", .kind = "run"}});
      case 12:
        return Ask(core::RemoveView{"fast"});
      case 15:
        return Ask(core::RecordBackup{.directory = "/srv/backup", .event_seq = 1});
      case 14:
        return Ask(core::PruneArtifacts{
            .submission = AnyEntry(),
            .policy = "telemetry_days: 1",
            .artifacts = {{core::RunId{1}, {.file_name = "telemetry_0.bin"}}}});
      case 11:
        return Ask(core::PublishSubmission{AnyEntry()});
      case 10:
        return Ask(core::OrderCaches{.dataset = "cosmo32",
                                     .action = core::kCacheActions[network_.Below(5) % 4],
                                     .workers = network_.Below(2) == 0
                                                    ? std::vector<std::string>{}
                                                    : std::vector<std::string>{worker}});
      case 9: {
        const std::string text = absl::StrCat("remark ", network_.now_us());
        return Ask(core::NoteSubmission{text, AnyEntry(), text},
                   [this](const auto& reply) { Prune(reply); });
      }
      case 0:
        return Ask(core::CancelSubmission{AnyEntry(), "no longer wanted"});
      case 1:
        return Ask(core::DrainWorker{worker, "maintenance"});
      case 2:
        return Ask(core::ResumeWorker{worker});
      case 3:
        return Ask(core::RevokeWorker{worker, "stolen"});
      case 4:
        return Ask(core::AddDataset{spare});
      case 5:
        return Ask(core::RemoveDataset{network_.Below(2) == 0 ? spare.id : "cosmo32"});
      case 6:
        return Ask(Token(core::TokenKind::kAccess, "bob"));
      case 7:
        return Ask(Token(core::TokenKind::kAccess, kForbidden));
      default:
        return Ask(core::RevokeToken{core::TokenId{1 + network_.Below(20)}});
    }
  }

  // Leaves a model out of what was noted on, if that is a throughput set which has ended.
  void Prune(const absl::StatusOr<core::Reply>& reply) {
    const auto* noted = reply.ok() ? std::get_if<core::SubmissionReply>(&*reply) : nullptr;
    if (noted == nullptr || !noted->submission.has_value()) return;
    const core::Submission& entry = *noted->submission;
    if (!core::IsThroughput(entry.spec) || entry.runs.empty()) return;
    Ask(core::PruneInstances{.submission = entry.id,
                             .runs = {entry.runs.back()},
                             .throughput = {.model_count = 1, .time_to_all_minutes = 1}});
  }

  void Repair() {
    Ask(core::AddDataset{core::testing::SomeDataset()});
    for (const auto& worker : workers_)
      Ask(core::ResumeWorker{worker->name()});
  }

  void GiveToken(SimWorker* worker) {
    const core::CreateToken token = Token(core::TokenKind::kEnrol, worker->name());
    Ask(token, [worker, token](const absl::StatusOr<core::Reply>& reply) {
      if (reply.ok()) worker->Enrol(token.secret_sha256);
    });
  }

  core::CreateToken Token(core::TokenKind kind, const std::string& principal) {
    const bool is_enrolment = kind == core::TokenKind::kEnrol;
    return {.request_id = absl::StrCat("token-", ++token_count_),
            .kind = kind,
            .role = is_enrolment ? "worker" : "submitter",
            .principal = principal,
            .organization = is_enrolment ? "" : "lab",
            .secret_sha256 = Sha256Hex(absl::StrCat("secret-", token_count_)),
            .expires_at_us = network_.now_us() + 30 * 24 * 60 * kMinute};
  }

  std::string AnyWorker() {
    return workers_[network_.Below(static_cast<uint32_t>(workers_.size()))]->name();
  }
  // One that was acknowledged; or one that there may not be.
  core::SubmissionId AnyEntry() {
    const auto& ids = submitters_.ids();
    if (ids.empty()) return core::SubmissionId{1 + network_.Below(10)};
    return *std::next(ids.begin(), network_.Below(static_cast<uint32_t>(ids.size())));
  }

  Network& network_;
  SimServer& server_;
  const Workers& workers_;
  const SimSubmitters& submitters_;
  int64_t token_count_ = 0;
};

}  // namespace assay::sim

#endif  // TESTS_SIM_SIM_PEOPLE_H_
