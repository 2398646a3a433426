// What a run in place of another is told of that.

#include <string>

#include "common/sha256.h"
#include "tests/integration/service_fixture.h"

namespace assay::testing {
namespace {

constexpr int kRunCount = 3;  // of the round "tiny"

class ReplacementTest : public ServiceTest {};

// The process that supervises the trainers was killed, after they had chosen.
TEST_F(ReplacementTest, AReplacementIsGivenTheEnginesOfTheRunThatItReplaces) {
  v1::SubmissionSpec spec = TinySpec("Org", 1);
  spec.set_replacement_count_max(kRunCount);
  ASSERT_THAT(Create(&*root_, spec), IsOk());
  FakeWorker worker(deployment_.Worker("w0"), "w0");
  ASSERT_THAT(worker.AwaitRun(), IsOk());
  // More than one piece of an artifact.
  const std::string engines = "device: \"GPU\"\n" + std::string(100'000, '#');
  ASSERT_THAT(worker.Upload("engines.textproto", engines, Sha256Hex(engines)), IsOk());

  // The others of the entry replace nothing, and leave nothing.
  for (int number = 2; number <= kRunCount + 1; ++number) {
    EXPECT_EQ(worker.desired().spec().engine_choices(), "");
    ASSERT_THAT(worker.EndRun(137), IsOk());
    ASSERT_THAT(worker.AwaitRun(), IsOk());
    ASSERT_EQ(worker.desired().spec().run_number(), number);
  }

  EXPECT_EQ(worker.desired().spec().engine_choices(), engines);
  const auto again = worker.Synchronize(absl::ZeroDuration());
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->spec().engine_choices(), "") << "it executes the run, and has them";
}

}  // namespace
}  // namespace assay::testing
