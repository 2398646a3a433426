// The files of a package; what the command writes of them is tested in tests/cli/commands_test.cc.

#include "common/client/export.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::Submission ExportedEntry() {
  v1::Submission entry;
  entry.set_name("submissions/e-4");
  v1::SubmissionSpec& spec = *entry.mutable_spec();
  spec.set_round("hpc-3.0.0");
  spec.set_benchmark("deepcam");
  spec.set_system("big machine");
  spec.set_organization("Org");
  return entry;
}

TEST(ExportTest, APartOfAPathHasNoSlashBlankOrLeadingDot) {
  EXPECT_EQ(PathPart("a/b c"), "a_b_c");
  EXPECT_EQ(PathPart("../x"), "_.._x");
  EXPECT_EQ(PathPart(""), "_");
}

TEST(ExportTest, OnlyTheFirstRoundKnowsNoStrongAndWeak) {
  v1::Submission entry = ExportedEntry();
  EXPECT_EQ(ResultsPath(entry), "results/big_machine/strong/deepcam");
  entry.mutable_spec()->set_round("hpc-0.7.0");
  EXPECT_EQ(ResultsPath(entry), "results/big_machine/deepcam");
}

TEST(ExportTest, DescribingFilesSayHowToRunItAgain) {
  std::vector<std::string> paths;
  std::vector<std::string> executables;
  for (const PackageFile& file :
       DescribingFiles(ExportedEntry(), {}, Json{{"host_memory_capacity", "1 TB"}})) {
    paths.push_back(file.path);
    if (file.is_executable) executables.push_back(file.path);
    if (file.path == "systems/big_machine.json") {
      EXPECT_THAT(file.content, HasSubstr("\"host_memory_capacity\": \"1 TB\""));
      EXPECT_THAT(file.content, HasSubstr("\"system_name\": \"big machine\""));
    }
  }

  const std::string folder = "benchmarks/deepcam/big_machine/";
  EXPECT_THAT(paths, ElementsAre("systems/big_machine.json", folder + "README.md",
                                 folder + "submission.toml", folder + "setup.sh",
                                 folder + "init_datasets.sh", folder + "run_and_time.sh",
                                 folder + "big_machine_assay.json"));
  EXPECT_THAT(executables, ElementsAre(folder + "setup.sh", folder + "init_datasets.sh",
                                       folder + "run_and_time.sh"));
}

}  // namespace
}  // namespace assay::client
