#include "common/rules/power.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay::rules {
namespace {

using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;
using ::testing::DoubleNear;
using ::testing::HasSubstr;

std::string Line(const std::string& key, int64_t time_ms, const std::string& value = "null") {
  return absl::StrCat(":::MLLOG {\"namespace\": \"\", \"time_ms\": ", time_ms,
                      ", \"event_type\": \"POINT_IN_TIME\", \"key\": \"", key,
                      "\", \"value\": ", value, ", \"metadata\": {}}\n");
}

TEST(PowerTest, AConstantDrawGivesPowerTimesTime) {
  std::string log = Line("power_measurement_start", 0);
  for (int second = 1; second <= 60; ++second)
    log += Line("power_reading", second * 1000, "500");
  log += Line("power_measurement_stop", 60000);

  // 500 W for half of the minute that was measured.
  EXPECT_THAT(NodeEnergy(log, 30000), IsOkAndHolds(DoubleNear(15000, 1e-9)));
}

TEST(PowerTest, ReadingsCountForTheTimeBeforeThem) {
  const std::string log = Line("power_reading", 4000, "300") +  // out of order: sorted by time
                          Line("power_measurement_start", 0) + Line("power_reading", 1000, "100") +
                          Line("conversion_eff", 0, "0.5");

  // (100 W * 1 s + 300 W * 3 s) / 4 s = 250 W, halved; the last reading ends it.
  EXPECT_THAT(NodeEnergy(log, 8000), IsOkAndHolds(DoubleNear(1000, 1e-9)));
}

// As the official summarizer reads it: each start is where the time begins, from the first stop on
// no reading counts, and the last stop is where the time ends.
TEST(PowerTest, OfRepeatedStartsAndStopsTheLastCounts) {
  const std::string log = Line("power_measurement_start", 0) + Line("power_reading", 1000, "100") +
                          Line("power_measurement_start", 2000) +
                          Line("power_reading", 3000, "300") +
                          Line("power_measurement_stop", 3000) +
                          Line("power_reading", 4000, "999") + Line("power_measurement_stop", 5000);

  // (100 W * 1 s + 300 W * 1 s) / 3 s, over 3 s.
  EXPECT_THAT(NodeEnergy(log, 3000), IsOkAndHolds(DoubleNear(400, 1e-9)));
}

TEST(PowerTest, ASwitchIsEstimatedByItsFirstFigure) {
  const std::string log = Line("conversion_eff", 0, "0.9") +
                          Line("interconnect_power_est", 1, "1000") +
                          Line("interconnect_power_est", 2, "9999");

  EXPECT_THAT(SwitchEnergy(log, 10000), IsOkAndHolds(DoubleNear(9000, 1e-9)));
}

TEST(PowerTest, DamagedLogsSayWhatIsMissing) {
  EXPECT_THAT(NodeEnergy("", 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("power_measurement_start")));
  EXPECT_THAT(NodeEnergy(Line("power_measurement_start", 5), 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("power_reading")));
  EXPECT_THAT(NodeEnergy(Line("power_measurement_start", 5) + Line("power_reading", 6, "\"x\""), 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no number")));
  EXPECT_THAT(SwitchEnergy("", 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("interconnect_power_est")));
}

TEST(PowerTest, TheScoreAveragesTheRunsThatTheTimeAverages) {
  const TimeToSolution time = {.minutes = 3, .counted = {2, 0}};
  const std::vector<std::optional<double>> energies = {10, 99, 30};

  EXPECT_EQ(ScoredEnergy(time, energies, 1.5), 30);
  EXPECT_EQ(ScoredEnergy(time, std::vector<std::optional<double>>{10, 99}, 1), std::nullopt);
  EXPECT_EQ(ScoredEnergy({}, energies, 1), std::nullopt);
}

}  // namespace
}  // namespace assay::rules
