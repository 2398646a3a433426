#include "worker/engine/backends/cuda/engine_chooser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/worker/engine/cuda/host_device.h"
#include "worker/engine/backends/cuda/plan.h"

namespace assay::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const ConvolutionLayout kLayout = LayoutOf(Conv2dShape{1, 4, 4, 4, 8, 3});

ConvolutionProblem Forward() {
  return ProblemOf(kLayout, Direction::kForward, Precision::kFloat32);
}

// What is logged while it lives.
class CapturedLog {
 public:
  CapturedLog() { ::testing::internal::CaptureStderr(); }
  ~CapturedLog() {
    if (!is_read_) text();
  }
  std::string text() {
    is_read_ = true;
    return ::testing::internal::GetCapturedStderr();
  }

 private:
  bool is_read_ = false;
};

class EngineChooserTest : public ::testing::Test {
 protected:
  EngineChooserTest() { device_.set_engines({{"first", 30}, {"second", 10}, {"third", 20}}); }

  static std::string Plan(EngineChooser* chooser, const ConvolutionProblem& problem = Forward()) {
    std::unique_ptr<ConvolutionPlan> plan;
    const Fault fault = chooser->Plan(problem, &plan);
    return fault.ok() ? plan->Identity() : "refused: " + fault.text;
  }

  std::string Choose(const EngineChoices& stored = {}) {
    EngineChooser chooser(&device_, {.is_timed = true, .stored = stored});
    const std::string engine = Plan(&chooser);
    made_ = chooser.made();
    return engine;
  }

  // As a run would have stored it.
  EngineChoices Stored(const std::string& engine) const {
    return {.device = device_.Model(),
            .library = device_.Library(),
            .choices = {{.convolution = KeyOf(Forward()),
                         .engine = engine,
                         .microseconds = 12,
                         .candidates_timed = 7}}};
  }

  HostDevice device_;
  EngineChoices made_;
};

TEST_F(EngineChooserTest, TheQuickestIsTakenAndTheChoiceKept) {
  EXPECT_EQ(Choose(), "second");

  EngineChoices expected = Stored("second");
  expected.choices[0].microseconds = 10;
  expected.choices[0].candidates_timed = 3;
  EXPECT_EQ(made_, expected);
}

TEST_F(EngineChooserTest, ATieGoesToTheLibrarysOrder) {
  device_.set_engines({{"first", 30}, {"second", 10}, {"third", 10}});

  EXPECT_EQ(Choose(), "second");
}

// One run to load its code, and three of which the shortest counts; all with their own memory.
TEST_F(EngineChooserTest, EachProblemIsTimedOnce) {
  EngineChooser chooser(&device_, {.is_timed = true});
  EXPECT_EQ(Plan(&chooser), "second");
  EXPECT_EQ(device_.timed(), 3 * 4);

  EXPECT_EQ(Plan(&chooser), "second");
  EXPECT_EQ(device_.timed(), 3 * 4);
  EXPECT_THAT(chooser.made().choices, SizeIs(1));

  Plan(&chooser, ProblemOf(kLayout, Direction::kBackwardData, Precision::kFloat32));
  Plan(&chooser, ProblemOf(kLayout, Epilogue::kAffineRelu, Precision::kBfloat16, 4096));
  EXPECT_EQ(device_.timed(), 3 * 3 * 4);
  EXPECT_THAT(chooser.made().choices, SizeIs(3));
}

TEST_F(EngineChooserTest, AStoredEngineIsTakenAlthoughItIsSlowerAndNothingIsTimed) {
  EXPECT_EQ(Choose(Stored("third")), "third");

  EXPECT_EQ(device_.timed(), 0);
  EXPECT_EQ(made_, Stored("third"));
}

TEST_F(EngineChooserTest, AStoredEngineThatIsGoneIsNamedWithWhatIsTakenInstead) {
  CapturedLog log;
  EXPECT_EQ(Choose(Stored("vanished")), "second");

  EXPECT_EQ(device_.timed(), 3 * 4);
  EXPECT_THAT(made_.choices, ElementsAre(EngineChoice{KeyOf(Forward()), "second", 10, 3}));
  EXPECT_THAT(log.text(), AllOf(HasSubstr("\"vanished\" is not offered"),
                                HasSubstr("taken instead: \"second\"")));
}

TEST_F(EngineChooserTest, EnginesOfAnotherDeviceAreNotTaken) {
  const EngineChoices stored = Stored("third");
  device_.set_model("a faster CPU");
  CapturedLog log;

  EXPECT_EQ(Choose(stored), "second");
  EXPECT_EQ(made_.device, "a faster CPU");
  EXPECT_THAT(log.text(), HasSubstr("they are of \"CPU, loops 1\""));
}

TEST_F(EngineChooserTest, OneThatFailsIsLeftOutAndNamed) {
  device_.set_engines({{"first", 30}, {"second", 10, /*fails_timed=*/true}, {"third", 20}});
  CapturedLog log;

  EXPECT_EQ(Choose(), "third");
  EXPECT_EQ(made_.choices[0].candidates_timed, 2);
  EXPECT_THAT(log.text(), AllOf(HasSubstr("left out is \"second\""), HasSubstr("told to fail")));
}

TEST_F(EngineChooserTest, WhereAllFailTheLibrarysFirstIsTaken) {
  device_.set_engines({{"first", 30, true}, {"second", 10, true}});

  EXPECT_EQ(Choose(), "first");
  EXPECT_THAT(made_.choices, ElementsAre(EngineChoice{KeyOf(Forward()), "first", 0, 0}));
}

TEST_F(EngineChooserTest, WithoutMemoryForTrialsTheLibrarysFirstIsTaken) {
  device_.set_free_bytes(100);
  CapturedLog log;

  EXPECT_EQ(Choose(), "first");
  EXPECT_EQ(device_.timed(), 0);
  EXPECT_THAT(log.text(), HasSubstr("no memory to time its engines"));
}

TEST_F(EngineChooserTest, UnlessTimedItIsTheLibrarysFirstWhateverIsStored) {
  EngineChooser chooser(&device_, {.stored = Stored("third")});

  EXPECT_EQ(Plan(&chooser), "first");
  EXPECT_EQ(device_.timed(), 0);
  EXPECT_EQ(chooser.made(), EngineChoices());
}

TEST_F(EngineChooserTest, ARefusalIsPassedOnAndNothingChosen) {
  device_.set_refuses_convolutions(true);

  EXPECT_EQ(Choose(Stored("third")), "refused: told to refuse");
  EXPECT_THAT(made_.choices, IsEmpty());
}

TEST_F(EngineChooserTest, TheLogNamesEngineTimeAndCandidates) {
  CapturedLog log;
  Choose();

  EXPECT_THAT(log.text(), AllOf(HasSubstr("engine=loop"), HasSubstr("configuration=\"second\""),
                                HasSubstr("chosen=timed microseconds=10 candidates_timed=3")));
}

// Equal extents of x and w do not make two problems one.
TEST(KeyOfTest, TellsPaddingAndLimitsApart) {
  ConvolutionProblem padded = Forward(), limited = Forward();
  padded.after[2] += 1;
  limited.max_workspace = 1 << 20;

  EXPECT_NE(KeyOf(padded), KeyOf(Forward()));
  EXPECT_NE(KeyOf(limited), KeyOf(Forward()));
  EXPECT_THAT(KeyOf(Forward()),
              AllOf(HasSubstr("forward fp32 x=1,4,1,4,4"), HasSubstr("before=0,1,1 after=0,1,1"),
                    Not(HasSubstr("workspace"))));
}

}  // namespace
}  // namespace assay::cuda
