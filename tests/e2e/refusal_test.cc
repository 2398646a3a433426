// What a user is told who asks for something wrong: exit code, place and remedy.

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "tests/e2e/site.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RefusalTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    site_ = new Site;
    coordinator_ = new Coordinator(site_);
    ProvideBeacons(*site_, "small", 4, 4);
  }
  static void TearDownTestSuite() {
    delete coordinator_;
    delete site_;
  }
  // Whatever was refused has left no entry.
  void TearDown() override { EXPECT_THAT(site_->AssayJson({"entry", "list"})["items"], IsEmpty()); }

  static Outcome Submit(const SubmissionText& text) {
    return site_->Assay({"submit", WriteSubmission(*site_, "wrong.toml", text)});
  }

  static Site* site_;
  static Coordinator* coordinator_;
};

Site* RefusalTest::site_ = nullptr;
Coordinator* RefusalTest::coordinator_ = nullptr;

TEST_F(RefusalTest, NamesTheRuleThePlaceAndTheRemedy) {
  const Outcome outcome = Submit({.opt_name = "adamw"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.Text();
  EXPECT_THAT(absl::StrCat(outcome.out, outcome.err),
              AllOf(HasSubstr("wrong.toml:13:12: error R-HP-004"), HasSubstr("adamw"),
                    HasSubstr("fix: set opt_name to sgd")));
}

TEST_F(RefusalTest, PlansWithTheSameVerdict) {
  const std::string file = WriteSubmission(*site_, "planned.toml", {.opt_name = "adamw"});
  const Outcome plan = site_->Assay({"plan", file});
  EXPECT_EQ(plan.exit_code, 3) << plan.Text();
  EXPECT_THAT(absl::StrCat(plan.out, plan.err), HasSubstr("R-HP-004"));
}

TEST_F(RefusalTest, NamesAGridThatCannotWorkBeforeItTrains) {
  const SubmissionText text = {
      .more = "cube_edge = 32\nbase_filter_count = 4\nspatial_grid = [2, 1]\n"};
  const Outcome outcome = Submit(text);
  EXPECT_EQ(outcome.exit_code, 3) << outcome.Text();
  EXPECT_THAT(absl::StrCat(outcome.out, outcome.err),
              AllOf(HasSubstr("wrong.toml:23:16: error R-RNK-003: spatial_grid = [2, 1]"),
                    HasSubstr("multiples of 32 voxels"), HasSubstr("fix: leave spatial_grid out")));
  const Outcome plan = site_->Assay({"plan", WriteSubmission(*site_, "wrong.toml", text)});
  EXPECT_EQ(plan.exit_code, 3) << plan.Text();
}

TEST_F(RefusalTest, HoldsAFacilityToItsOwnRules) {
  const Outcome outcome = Submit({.more = "cube_edge = 32\nbase_filter_count = 16\n"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.Text();
  EXPECT_THAT(absl::StrCat(outcome.out, outcome.err),
              AllOf(HasSubstr("R-FAC-902"), HasSubstr("keep the 4 filters")));
}

TEST_F(RefusalTest, SuggestsTheKeyThatWasMeant) {
  const Outcome outcome = Submit({.more = "cube_egde = 32\nbase_filter_count = 4\n"});
  EXPECT_EQ(outcome.exit_code, 2) << outcome.Text();
  EXPECT_THAT(absl::StrCat(outcome.out, outcome.err),
              AllOf(HasSubstr("wrong.toml:21:1: error"), HasSubstr("cube_edge")));
}

TEST_F(RefusalTest, SuggestsTheCommandThatWasMeant) {
  const Outcome outcome = site_->Assay({"sumbit", "x.toml"});
  EXPECT_EQ(outcome.exit_code, 2) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("submit"));
  EXPECT_THAT(outcome.out, IsEmpty());
}

TEST_F(RefusalTest, NamesADatasetThatIsNotRegistered) {
  const Outcome outcome = Submit({.dataset = "cosmo1024"});
  EXPECT_NE(outcome.exit_code, 0) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("cosmo1024"));
}

TEST_F(RefusalTest, NamesARoundThatIsNotKnown) {
  const Outcome outcome = Submit({.round = "hpc-9.9.9"});
  EXPECT_NE(outcome.exit_code, 0) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("hpc-9.9.9"));
}

TEST_F(RefusalTest, NamesAFileThatIsNotThere) {
  const Outcome outcome = site_->Assay({"submit", "nowhere.toml"});
  EXPECT_EQ(outcome.exit_code, 5) << outcome.Text();
  EXPECT_THAT(outcome.err, HasSubstr("nowhere.toml"));
}

TEST_F(RefusalTest, NamesWhatDoesNotExist) {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"entry", "show", "e-999"},
                                             {"run", "show", "r-999"},
                                             {"logs", "r-999"},
                                             {"node", "show", "elsewhere"},
                                             {"dataset", "show", "cosmo1024"},
                                             {"rules", "explain", "R-NONE-999"}}) {
    const Outcome outcome = site_->Assay(command);
    EXPECT_EQ(outcome.exit_code, 5) << command[0] << " " << outcome.Text();
    EXPECT_THAT(outcome.err, HasSubstr(command.back())) << command[0];
    EXPECT_THAT(outcome.out, IsEmpty()) << command[0];
  }
}

TEST_F(RefusalTest, RefusesADatasetWhoseBytesHaveChanged) {
  const std::string folder = site_->Path("datasets/damaged");
  const Outcome made = site_->Assay({"dataset", "generate", folder, "--train", "4", "--eval", "4"});
  ASSERT_EQ(made.exit_code, 0) << made.Text();
  ASSERT_EQ(site_->Assay({"dataset", "verify", folder}).exit_code, 0);
  const Outcome damage = site_->RunProgram(
      {"/bin/sh", "-c",
       absl::StrCat("f=$(find ", folder, " -name '*.tfrecord' | head -1) && printf x | ",
                    "dd of=$f bs=1 seek=5000 conv=notrunc")});
  ASSERT_EQ(damage.exit_code, 0) << damage.Text();
  const Outcome verified = site_->Assay({"dataset", "verify", folder});
  EXPECT_NE(verified.exit_code, 0) << verified.Text();
}

TEST(UnreachableTest, ExitsWithSixWhereNoCoordinatorAnswers) {
  Site site;
  const Outcome unnamed = site.Assay({"status"});
  EXPECT_EQ(unnamed.exit_code, 6) << unnamed.Text();
  EXPECT_THAT(unnamed.err, HasSubstr("assay dev"));
  const Outcome gone = site.Assay({"entry", "list", "--socket", site.Path("nobody.sock")});
  EXPECT_EQ(gone.exit_code, 6) << gone.Text();
  EXPECT_THAT(gone.err, HasSubstr("nobody.sock"));
}

TEST(ProgramsTest, ATrainerWithoutARunSaysHowItIsUsed) {
  const Site site;
  for (const std::vector<std::string>& more : {std::vector<std::string>{},
                                               {"--call_by_call"},
                                               {"--all_reduce=4"},
                                               {"--gpu_all_reduce=4"}}) {
    std::vector<std::string> argv = {site.Program("assay-train")};
    argv.insert(argv.end(), more.begin(), more.end());
    const Outcome outcome = site.RunProgram(argv);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.Text();
    EXPECT_NE(outcome.Text(), "");
  }
}

TEST(ProgramsTest, ATrainerWithoutGpusSaysWhatIsMissing) {
  Site site;
  site.Export("ASSAY_CUDA_PLUGIN=/nowhere/libassay_cuda.so");
  const Outcome outcome = site.RunProgram({site.Program("assay-train"), "--gpus"});
  EXPECT_EQ(outcome.exit_code, 5) << outcome.Text();
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("/nowhere/libassay_cuda.so"), HasSubstr("cuDNN 9")));
}

}  // namespace
}  // namespace assay::testing
