// What a turn of the coordinator's loop costs that concerns nobody, by the number of workers and of
// calls that are parked; and what of that the parked calls cost. Without a disk.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "benchmark/benchmark.h"

#include "server/runtime/core_loop.h"
#include "server/store/core_store.h"
#include "tests/support/fake_clock.h"

namespace assay::runtime {
namespace {

constexpr int64_t kPollUs = 20'000'000;

class NoStore final : public store::CoreStore {
 public:
  absl::Status Commit(const core::Outcome&, const core::State&) override {
    return absl::OkStatus();
  }
  absl::StatusOr<core::State> Load() override { return core::State{}; }
  absl::StatusOr<core::Run> LoadRun(core::RunId) override { return absl::NotFoundError("none"); }
  absl::StatusOr<core::ClosedSubmission> LoadClosed(core::SubmissionId) override {
    return absl::NotFoundError("none");
  }
  absl::Status SyncMark() override { return absl::OkStatus(); }
  int64_t wal_frames() const override { return 0; }
  absl::Status Checkpoint() override { return absl::OkStatus(); }
  int64_t FreeDiskBytes() const override { return int64_t{1} << 40; }
};

void ParkedAlone(benchmark::State& state) {
  const core::Core core({}, core::State{}, 0);
  ParkedPolls polls;
  for (int64_t i = 0; i < state.range(0); ++i)
    polls.Park(absl::StrCat("w", i), kPollUs + i, {}, [](const auto&) {}, {});
  for (auto _ : state) {
    polls.Answer(core, {"w0"}, 1);
    benchmark::DoNotOptimize(polls.NextDeadlineUs());
  }
  polls.AnswerAll(core);
}
BENCHMARK(ParkedAlone)->ArgName("parked")->Arg(100)->Arg(1000)->Arg(10000);

void Turn(benchmark::State& state) {
  const testing::FakeClock clock;
  NoStore store;
  Watchers watchers;
  TokenTable tokens;
  CertificateTable certificates;
  CoreLoop loop(
      {&clock, &store, &watchers, &tokens, &certificates},
      core::Core({}, core::State{}, absl::ToUnixMicros(clock.Wall())), [](const auto&) {}, [] {},
      {});
  std::vector<QueuedCommand> batch;
  for (int64_t i = 0; i < state.range(0); ++i) {
    const bool is_parked = i < state.range(1);
    core::Synchronize call{.worker = absl::StrCat("w", i),
                           .poll_timeout_us = is_parked ? kPollUs : 0};
    call.description.incarnation = "i";
    batch.push_back({{"bench", std::move(call)}, [](const auto&) {}});
  }
  loop.HandleBatch(std::move(batch));
  for (auto _ : state) {
    loop.HandleBatch({});
    benchmark::DoNotOptimize(loop.TimeToWait());
  }
}
BENCHMARK(Turn)
    ->ArgNames({"workers", "parked"})
    ->Args({1000, 0})
    ->Args({1000, 1000})
    ->Args({10000, 0})
    ->Args({10000, 10000})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace assay::runtime
