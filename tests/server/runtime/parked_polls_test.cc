#include "server/runtime/parked_polls.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/server/core/world.h"

namespace assay::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Two workers that wait for work, each with a call that is held.
class ParkedPollsTest : public ::testing::Test {
 protected:
  ParkedPollsTest() {
    for (const char* worker : {"w0", "w1"})
      EXPECT_TRUE(world_.Sync(worker).ok());
    Park("w0", 20);
    Park("w1", 10);
  }

  void Park(const std::string& worker, int64_t deadline_us) {
    polls_.Park(worker, deadline_us, world_.core().DesiredFor(worker),
                [this, worker](const absl::StatusOr<core::Reply>& reply) {
                  ASSERT_TRUE(reply.ok());
                  answered_.push_back(worker);
                  const auto& answer = std::get<core::SynchronizeReply>(*reply);
                  if (answer.desired.action == core::DesiredAction::kExecute) told_.insert(worker);
                },
                {});
  }

  core::testing::World world_;
  ParkedPolls polls_;
  std::vector<std::string> answered_;
  std::set<std::string> told_;  // to execute a run
};

TEST_F(ParkedPollsTest, EndEachAtItsOwnDeadline) {
  EXPECT_EQ(polls_.NextDeadlineUs(), 10);
  polls_.Answer(world_.core(), {}, 9);
  EXPECT_THAT(answered_, IsEmpty());
  polls_.Answer(world_.core(), {}, 10);
  EXPECT_THAT(answered_, ElementsAre("w1"));
  EXPECT_EQ(polls_.NextDeadlineUs(), 20);
  polls_.Answer(world_.core(), {}, 30);
  EXPECT_THAT(answered_, ElementsAre("w1", "w0"));
  EXPECT_EQ(polls_.NextDeadlineUs(), std::nullopt);
}

TEST_F(ParkedPollsTest, AnswersWhoHasSomethingElseToDo) {
  core::SubmissionSpec spec = core::testing::SomeSpec();
  spec.node_count = 2;
  world_.Submit(spec);
  polls_.Answer(world_.core(), {"w1", "w7"}, 1);
  EXPECT_THAT(answered_, ElementsAre("w1"));
  EXPECT_THAT(told_, ElementsAre("w1"));
  polls_.Answer(world_.core(), {"w0", "w1"}, 1);
  EXPECT_THAT(told_, UnorderedElementsAre("w0", "w1"));
  EXPECT_EQ(polls_.NextDeadlineUs(), std::nullopt);
}

TEST_F(ParkedPollsTest, WhoIsConcernedButHasNothingElseToDoWaits) {
  polls_.Answer(world_.core(), {"w0", "w1"}, 1);
  EXPECT_THAT(answered_, IsEmpty());
}

// The deadline of the call before says nothing about the next.
TEST_F(ParkedPollsTest, ACallThatTakesAnothersPlaceHasItsOwnDeadline) {
  polls_.Release("w1", world_.core().DesiredFor("w1"));
  EXPECT_THAT(answered_, ElementsAre("w1"));
  Park("w1", 30);
  EXPECT_EQ(polls_.NextDeadlineUs(), 20);
  polls_.Answer(world_.core(), {}, 20);
  EXPECT_THAT(answered_, ElementsAre("w1", "w0"));
  EXPECT_EQ(polls_.NextDeadlineUs(), 30);
}

TEST_F(ParkedPollsTest, EndAllAtOnce) {
  polls_.AnswerAll(world_.core());
  EXPECT_THAT(answered_, UnorderedElementsAre("w0", "w1"));
  EXPECT_EQ(polls_.NextDeadlineUs(), std::nullopt);
}

}  // namespace
}  // namespace assay::runtime
