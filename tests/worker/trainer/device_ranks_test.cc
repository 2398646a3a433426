#include "worker/trainer/device_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/comm/memory_world.h"
#include "worker/comm/single.h"

namespace assay {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::IsOk;

// Remembers how it was joined.
class FakeAverage : public RankAverage {
 public:
  explicit FakeAverage(bool is_installed) : is_installed_(is_installed) {}

  absl::StatusOr<std::string> MakeId() override {
    if (!is_installed_) return absl::UnavailableError("not installed");
    return std::string("an\0id", 5);
  }
  absl::Status Join(const RanksToJoin& ranks) override {
    joined_as_ = absl::StrCat(ranks.id, "/", ranks.rank, "/", ranks.size, "/", ranks.group_size,
                              "/", absl::FormatDuration(ranks.timeout));
    return absl::OkStatus();
  }
  bool has_joined() const override { return !joined_as_.empty(); }
  void Average(const Tensor&, RankScope) override {}
  void Start(const Tensor&) override {}
  void Finish() override {}
  void Exchange(std::span<const RankTransfer>) override {}

  const std::string& joined_as() const { return joined_as_; }

 private:
  const bool is_installed_;
  std::string joined_as_;
};

// How each of two ranks joined; only rank 0's library matters for the id.
std::vector<std::string> JoinTwo(bool is_installed) {
  const RealClock clock;
  std::vector<std::unique_ptr<comm::Collective>> ranks = comm::OpenMemoryWorld(2, &clock);
  std::vector<FakeAverage> averages(2, FakeAverage(is_installed));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      EXPECT_THAT(JoinDeviceRanks(&averages[i], 2, ranks[i].get(), &clock, absl::Seconds(60)),
                  IsOk());
    });
  for (std::thread& thread : threads)
    thread.join();
  return {averages[0].joined_as(), averages[1].joined_as()};
}

TEST(DeviceRanksTest, AllJoinWithTheIdOfRankZero) {
  EXPECT_THAT(JoinTwo(true),
              ElementsAre(std::string("an\0id/0/2/2/1m", 14), std::string("an\0id/1/2/2/1m", 14)));
}

TEST(DeviceRanksTest, NobodyJoinsWhereTheLibraryIsNotInstalled) {
  EXPECT_THAT(JoinTwo(false), Each(""));
}

TEST(DeviceRanksTest, ARankAloneJoinsNothing) {
  const RealClock clock;
  FakeAverage average(true);
  const std::unique_ptr<comm::Collective> alone = comm::OpenSingle();

  EXPECT_THAT(JoinDeviceRanks(&average, 1, alone.get(), &clock, absl::Seconds(1)), IsOk());
  EXPECT_THAT(JoinDeviceRanks(nullptr, 1, alone.get(), &clock, absl::Seconds(1)), IsOk());

  EXPECT_FALSE(average.has_joined());
}

}  // namespace
}  // namespace assay
