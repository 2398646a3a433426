// Oracles: the reference's own scheduler classes, executed (values from the specification of its
// schedules), and PyTorch's, in tests/golden/engine/schedules.json (golden_test.cc).

#include "worker/engine/step_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/status_matchers.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

using Kind = StepSchedule::Kind;

void ExpectRates(const StepSchedule& schedule, const std::vector<double>& expected) {
  ASSERT_THAT(Validate(schedule), IsOk());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(LearningRateAtStep(schedule, static_cast<int64_t>(i) + 1), expected[i], 6e-6)
        << "step " << i + 1;
}

TEST(StepScheduleTest, MultistepWarmsUpFreezesAndDecaysLate) {
  ExpectRates({.base = 1, .warmup_steps = 5, .milestones = {4, 8}, .decay = 0.1},
              {.2, .4, .6, .8, .8, .8, .8, .8, .8, .08, .08, .08, .08, .008});
}

TEST(StepScheduleTest, MultistepWithoutWarmupDecaysOnTheMilestone) {
  ExpectRates({.base = 1, .milestones = {4, 6}, .decay = 0.1}, {1, 1, 1, .1, .1, .01, .01});
}

TEST(StepScheduleTest, AWarmupFactorRaisesTheRateFromTheBase) {
  ExpectRates({.base = 1, .warmup_steps = 4, .warmup_factor = 3}, {1.5, 2, 2.5, 2.5, 2.5});
}

TEST(StepScheduleTest, CosineFallsFromTheBaseAndRisesAgain) {
  ExpectRates({.kind = Kind::kCosine, .base = 1, .period = 4, .least = 0.2},
              {1, .8828427, .6, .3171573, .2, .3171573, .6});
}

TEST(StepScheduleTest, CosineAfterWarmupRisesToTheFullBase) {
  ExpectRates({.kind = Kind::kCosine, .base = 1, .warmup_steps = 4, .period = 6},
              {.25, .5, .75, .75, .69976, .5625, .375, .1875, .05024, 0, .06699, .25});
}

// With power 1 a straight line from 1 to 0.2 over 4 steps, and no further; then the same line after
// warm-up, which leaves the rate at 0.75.
TEST(StepScheduleTest, PolynomialOfPowerOneIsALine) {
  ExpectRates({.kind = Kind::kPolynomial, .base = 1, .period = 4, .least = 0.2},
              {1, .8, .6, .4, .2, .2, .2});
  ExpectRates({.kind = Kind::kPolynomial, .base = 1, .warmup_steps = 4, .period = 3},
              {.25, .5, .75, .75, .5, .25, 0, 0});
}

TEST(StepScheduleTest, PolynomialOfPowerTwoIsAParabola) {
  ExpectRates({.kind = Kind::kPolynomial, .base = 1, .period = 4, .power = 2},
              {1, .5625, .25, .0625, 0, 0});
}

TEST(StepScheduleTest, RefusesWhatWouldNotTrain) {
  const auto refused = [](const StepSchedule& schedule, const char* message) {
    EXPECT_THAT(Validate(schedule),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  refused({.base = 0}, "learning rate");
  refused({.warmup_steps = -1}, "warm-up steps");
  refused({.warmup_steps = 1}, "one step of warm-up");
  refused({.warmup_factor = 0.5}, "factor");
  refused({.milestones = {5, 3}}, "ascend");
  refused({.kind = Kind::kCosine, .period = 0}, "t_max");
  refused({.kind = Kind::kCosine, .least = 1}, "eta_min");
  refused({.kind = Kind::kPolynomial, .power = 0}, "power");
}

}  // namespace
}  // namespace assay
