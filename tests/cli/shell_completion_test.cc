// What a real bash offers after the script of `assay completion bash`, with the program itself and
// a coordinator behind it.

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "cli/command/completion.h"
#include "common/file.h"
#include "tests/cli/fake_coordinator.h"
#include "tests/support/official_checker.h"
#include "tests/support/temp_dir.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class ShellCompletionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    CHECK_OK(WriteFileAtomic(dir_.Path("assay.bash"), cli::CompletionScript("bash")));
  }

  // What is offered for the last of `words`, which the shell has split as it splits a line.
  std::vector<std::string> Offered(const std::vector<std::string>& words) {
    const char* const bin = std::getenv("ASSAY_BIN_DIR");
    const std::string program = JoinPath(bin == nullptr ? "build/dev/bin" : bin, "assay");
    std::vector<std::string> argv = {
        "/usr/bin/env", "-i", "PATH=/usr/bin:/bin", absl::StrCat("HOME=", dir_.path()),
        absl::StrCat("XDG_RUNTIME_DIR=", dir_.path()),
        absl::StrCat("ASSAY_SOCKET=", coordinator_.socket_path()), "bash", "-c",
        // A second may be too short on a busy machine.
        R"(timeout() { command timeout 60 "${@:2}"; }
           source "$1"; program=$2; shift 2
           COMP_WORDS=(assay "$@"); COMP_CWORD=$#
           _assay "$program"; printf '%s\n' "${COMPREPLY[@]}")",
        "bash", dir_.Path("assay.bash"), program};
    argv.insert(argv.end(), words.begin(), words.end());
    const testing::ProgramRun run = testing::RunToEnd(argv);
    EXPECT_EQ(run.exit_code, 0) << run.output;
    return absl::StrSplit(run.output, '\n', absl::SkipEmpty());
  }

  testing::TempDir dir_;
  testing::FakeCoordinator coordinator_;
};

TEST_F(ShellCompletionTest, NamesComeFromTheCoordinator) {
  coordinator_.Start();

  EXPECT_THAT(Offered({"entry", "show", ""}), UnorderedElementsAre("e-1", "e-2"));
  EXPECT_THAT(Offered({"why", "e-2"}), UnorderedElementsAre("e-2"));
  EXPECT_THAT(Offered({"set", "show", "s-"}), UnorderedElementsAre("s-1", "s-2"));
  EXPECT_THAT(Offered({"run", "logs", "r-"}), UnorderedElementsAre("r-1", "r-2", "r-3", "r-4"));
  EXPECT_THAT(Offered({"node", "drain", "w"}), UnorderedElementsAre("w0", "w1"));
  EXPECT_THAT(Offered({"dataset", "show", ""}), UnorderedElementsAre("cosmo32"));
  EXPECT_THAT(Offered({"run", "list", "--entry", ""}), UnorderedElementsAre("e-1", "e-2"));
  EXPECT_THAT(Offered({"rules", "show", "hpc-3"}), UnorderedElementsAre("hpc-3.0.0"));
  EXPECT_THAT(Offered({"entry", "list", "--benchmark", "deep"}), Contains("deepcam"));
}

TEST_F(ShellCompletionTest, FixedWordsNeedNoCoordinator) {
  EXPECT_THAT(Offered({"entry", "l"}), UnorderedElementsAre("list"));
  EXPECT_THAT(Offered({"entry", "list", "--divis"}), UnorderedElementsAre("--division"));
  EXPECT_THAT(Offered({"entry", "list", "-o", "n"}), UnorderedElementsAre("name", "ndjson"));
  EXPECT_THAT(Offered({"entry", "list", "--output", "=", "c"}), UnorderedElementsAre("csv"));
  EXPECT_THAT(Offered({"entry", "list", "--division", "="}),
              UnorderedElementsAre("closed", "open"));
  EXPECT_THAT(Offered({"run", "list", "--state", "s"}), UnorderedElementsAre("succeeded"));
  EXPECT_THAT(Offered({"entry", "list", "--state", "in"}), UnorderedElementsAre("invalid"));
}

TEST_F(ShellCompletionTest, WithoutCoordinatorNothingIsSaid) {
  EXPECT_THAT(Offered({"entry", "show", ""}), IsEmpty());
}

// A name goes onto the command line of whoever completes it.
TEST_F(ShellCompletionTest, NamesAreNoCode) {
  const std::string trap = dir_.Path("trap");
  coordinator_.workers[0].set_name(absl::StrCat("workers/$(touch ", trap, ")"));
  coordinator_.workers[1].set_name("workers/w1;reboot");
  coordinator_.Start();

  EXPECT_THAT(Offered({"node", "show", ""}), IsEmpty());
  EXPECT_FALSE(FileExists(trap));
}

}  // namespace
}  // namespace assay
