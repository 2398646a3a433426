// The real store on a disk that fills, refuses and loses power.

#ifndef TESTS_SIM_SIM_STORE_H_
#define TESTS_SIM_SIM_STORE_H_

#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "common/log.h"
#include "server/store/core_store.h"
#include "server/store/store.h"
#include "tests/sim/history.h"
#include "tests/sim/network.h"

namespace assay::sim {

// Thrown where the coordinator stops in the middle of what it does.
struct PowerLoss {};

// Names what the schema does not allow: the store refuses it for ever.
inline constexpr char kForbidden[] = "forbidden";

// What does not fit into a row here.
inline constexpr int kRowBytesMax = 16000;

class SimStore final : public store::CoreStore {
 public:
  SimStore(Network* network, History* history, Coverage* coverage, std::string path)
      : network_(*network), history_(*history), coverage_(*coverage), path_(std::move(path)) {
    absl::StatusOr<std::unique_ptr<store::Store>> opened = store::Store::Open(path_);
    CHECK_OK(opened.status());
    store_ = *std::move(opened);
    store_->LimitRowBytes(kRowBytesMax);
    synced_mark_ = ReadMarkFile();
  }

  absl::StatusOr<core::State> Load() override { return store_->Load(); }
  absl::StatusOr<core::Run> LoadRun(core::RunId id) override { return store_->LoadRun(id); }
  absl::StatusOr<core::ClosedSubmission> LoadClosed(core::SubmissionId id) override {
    return store_->LoadClosed(id);
  }

  absl::Status Commit(const core::Outcome& outcome, const core::State& state) override {
    if (outcome.events.empty()) return store_->Commit(outcome, state);
    const bool is_last = network_.Permille(network_.troubles.power_loss_permille);
    const uint32_t where = network_.Below(4);
    if (is_last && where == 0) Die("power loss before a commit");
    absl::Status status = TryCommit(outcome, state);
    was_refused_ = !status.ok() && !absl::IsResourceExhausted(status);
    if (!status.ok()) {
      ++refused_count_;
      return status;
    }
    is_mark_synced_ = false;
    history_.Committed(outcome, network_.now_us());
    if (is_last && where == 1) Die("power loss after a commit");
    if (is_last) answers_left_ = static_cast<int32_t>(network_.Below(4));
    return status;
  }

  absl::Status SyncMark() override {
    if (std::exchange(is_mark_synced_, true)) return store_->SyncMark();
    const absl::Status status = store_->SyncMark();
    synced_mark_ = ReadMarkFile();
    return status;
  }
  int64_t wal_frames() const override {
    constexpr int64_t kFrames[] = {5000, 300000};  // enough for either kind of checkpoint
    return network_.Permille(3) ? kFrames[network_.Below(2)] : store_->wal_frames();
  }
  absl::Status Checkpoint() override {
    ++coverage_.met["checkpoint that commits wait for"];
    return store_->Checkpoint();
  }
  int64_t FreeDiskBytes() const override {
    // What is told may be old.
    return IsFull() && network_.Below(4) != 0 ? 0 : std::numeric_limits<int64_t>::max();
  }

  // One more answer leaves. The power may be lost before it does.
  void CountAnswer() {
    if (answers_left_ >= 0 && answers_left_-- == 0) Die("power loss between answers");
  }
  // The turn is over; a loss that was to come in it comes now.
  void EndTurn() {
    if (answers_left_ >= 0) Die("power loss after the answers");
  }

  // The power is back. Of the mark there may be what was synced last.
  void LoseCache() {
    store_.reset();
    if (network_.Below(2) == 0) return;
    std::fstream file(store::MarkPath(path_), std::ios::in | std::ios::out | std::ios::binary);
    file.write(synced_mark_.data(), static_cast<std::streamsize>(synced_mark_.size()));
  }

  int64_t refused_count() const { return refused_count_; }

  // What questions to the history compare is what bodies say, after all that has happened.
  std::vector<std::string> FactDifferences() {
    CHECK_OK(store_->LimitPages(1 << 30));
    absl::StatusOr<std::vector<std::string>> differences = store_->CompareFacts();
    CHECK_OK(differences.status());
    return *std::move(differences);
  }

 private:
  [[noreturn]] void Die(const char* where) {
    ++coverage_.met[where];
    throw PowerLoss{};
  }

  bool IsFull() const { return network_.now_us() < full_until_us_; }

  absl::Status TryCommit(const core::Outcome& outcome, const core::State& state) {
    for (const core::RecordedEvent& event : outcome.events) {
      const auto* created = std::get_if<core::TokenCreated>(&event.event);
      if (created == nullptr || created->token.principal != kForbidden) continue;
      ++coverage_.met["commit refused by the schema"];
      return absl::InternalError("CHECK constraint failed");
    }
    // Most of all while the commands of a refused batch are tried one by one.
    const uint32_t likelihood = was_refused_ ? 50 : 1;
    if (!IsFull() && network_.Permille(likelihood * network_.troubles.full_disk_permille))
      full_until_us_ = network_.now_us() + kSecond * (1 + network_.Below(120));
    CHECK_OK(store_->LimitPages(IsFull() ? 1 : 1 << 30));  // 1: as many as there are
    if (IsFull() && network_.Below(2) == 0) {
      ++coverage_.met["commit refused by a full disk"];
      return absl::ResourceExhaustedError("the disk is full");
    }
    absl::Status status = store_->Commit(outcome, state);
    if (absl::IsInvalidArgument(status)) ++coverage_.met["commit refused by a row's size"];
    if (absl::IsResourceExhausted(status)) ++coverage_.met["commit that found no page"];
    return status;
  }

  std::string ReadMarkFile() const {
    std::ifstream file(store::MarkPath(path_), std::ios::binary);
    std::string bytes(1 << 14, '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<size_t>(file.gcount()));
    return bytes;
  }

  Network& network_;
  History& history_;
  Coverage& coverage_;
  const std::string path_;
  std::unique_ptr<store::Store> store_;
  std::string synced_mark_;  // the bytes that a loss of power leaves
  bool is_mark_synced_ = true;
  int64_t full_until_us_ = 0;
  int32_t answers_left_ = -1;  // until the power is lost; below 0: it is not
  bool was_refused_ = false;   // the last commit, for what it holds
  int64_t refused_count_ = 0;
};

}  // namespace assay::sim

#endif  // TESTS_SIM_SIM_STORE_H_
