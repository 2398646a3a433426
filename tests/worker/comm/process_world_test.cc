// Ranks as processes: orderly end, and what the others do when one is killed.

#include <signal.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/exit_code.h"
#include "common/file.h"
#include "common/log.h"
#include "common/process.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "worker/comm/rendezvous_server.h"

namespace assay::comm {
namespace {

using assay::testing::IsOk;
using assay::testing::IsOkAndHolds;
using assay::testing::TempDir;
using ::testing::HasSubstr;

constexpr int kRanks = 3;
// Far below comm_peer's own deadlines of 60 s: a death must be noticed, not timed out.
constexpr absl::Duration kExitPatience = absl::Seconds(40);

class ProcessWorldTest : public ::testing::Test {
 protected:
  // Starts all ranks; rank 0 listens on a port that was free a moment ago.
  void Start(int rounds) {
    const std::string address = FreeAddress();
    for (int rank = 0; rank < kRanks; ++rank) {
      const absl::StatusOr<ProcessId> process =
          Spawn(SpawnOptions{.argv = {Program(), absl::StrCat(rank), absl::StrCat(kRanks), address,
                                      "secret", absl::StrCat(rounds), Progress(rank)},
                             .output_path = Output(rank)});
      ASSERT_THAT(process, IsOk());
      ranks_.push_back(*process);
    }
  }

  void TearDown() override {
    for (const ProcessId& rank : ranks_) {
      if (IsRunning(rank)) static_cast<void>(StopGroup(rank, absl::ZeroDuration()));
    }
  }

  void WaitUntilAllHaveReduced() const {
    for (int rank = 0; rank < kRanks; ++rank) {
      while (!FileExists(Progress(rank))) {
        ASSERT_TRUE(IsRunning(ranks_[static_cast<size_t>(rank)])) << *ReadFile(Output(rank));
      }
    }
  }

  static std::string Program() {
    const char* const directory = std::getenv("ASSAY_BIN_DIR");
    if (directory != nullptr) return JoinPath(directory, "comm_peer");
    return JoinPath(*ProgramDirectory(), "../bin/comm_peer");
  }

  static std::string FreeAddress() {
    const RealClock clock;
    absl::StatusOr<std::unique_ptr<RendezvousServer>> server =
        RendezvousServer::Start(RendezvousServerOptions{.token = "x"}, &clock);
    CHECK_OK(server.status());
    return (*server)->address();
  }

  std::string Progress(int rank) const { return dir_.Path(absl::StrCat("progress", rank)); }
  std::string Output(int rank) const { return dir_.Path(absl::StrCat("output", rank)); }

  TempDir dir_;
  std::vector<ProcessId> ranks_;
};

TEST_F(ProcessWorldTest, AllRanksEndInOrder) {
  Start(/*rounds=*/5);
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_THAT(WaitForExit(ranks_[static_cast<size_t>(rank)], kExitPatience), IsOkAndHolds(0))
        << *ReadFile(Output(rank));
  }
}

// Killed in the middle of a loop of all-reduces, rank 0 (which serves the rendezvous) or another.
class KilledRankTest : public ProcessWorldTest, public ::testing::WithParamInterface<int> {};

TEST_P(KilledRankTest, TheOthersExitWithCommLostLongBeforeTheirDeadline) {
  const int victim = GetParam();
  Start(/*rounds=*/0);
  WaitUntilAllHaveReduced();

  ASSERT_THAT(SignalGroup(ranks_[static_cast<size_t>(victim)], SIGKILL), IsOk());

  for (int rank = 0; rank < kRanks; ++rank) {
    const int expected = rank == victim ? 128 + SIGKILL : static_cast<int>(ExitCode::kCommLost);
    EXPECT_THAT(WaitForExit(ranks_[static_cast<size_t>(rank)], kExitPatience),
                IsOkAndHolds(expected))
        << *ReadFile(Output(rank));
    if (rank == victim) continue;
    EXPECT_THAT(ReadFile(Output(rank)), IsOkAndHolds(HasSubstr("rank ")));
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, KilledRankTest, ::testing::Values(0, 1, 2));

}  // namespace
}  // namespace assay::comm
