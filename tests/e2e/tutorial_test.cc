// docs/tutorial.md as a newcomer follows it: every command is run, and prints what the page says.
//
// A block ```toml NAME is saved as that file. In a block ```console, lines that begin with "$ " are
// commands and the others what they print. Numbers, digests and spaces may be others than on the
// page; "…" stands for any text, and alone on a line for any lines.

#include <csignal>
#include <filesystem>
#include <regex>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "tests/e2e/site.h"
#include "tests/support/status_matchers.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

constexpr absl::string_view kAny = "…";
constexpr absl::Duration kPatience = absl::Minutes(1);

struct Step {
  std::string file;     // to save `text` as, or
  std::string command;  // to run, which prints `lines`
  std::string text;
  std::vector<std::string> lines;
  int line = 0;  // of the page
};

std::vector<Step> StepsOf(absl::string_view page) {
  std::vector<Step> steps;
  bool is_console = false;
  bool is_file = false;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    ++number;
    if (line == "```console") {
      is_console = true;
    } else if (absl::ConsumePrefix(&line, "```toml ")) {
      is_file = true;
      steps.push_back({.file = std::string(line), .line = number});
    } else if (absl::StartsWith(line, "```")) {
      is_console = is_file = false;
    } else if (is_file) {
      absl::StrAppend(&steps.back().text, line, "\n");
    } else if (is_console && absl::ConsumePrefix(&line, "$ ")) {
      steps.push_back({.command = std::string(line), .line = number});
    } else if (is_console) {
      steps.back().lines.emplace_back(line);
    }
  }
  return steps;
}

// The line with "#" for each number and digest, and single spaces.
std::string Plain(const std::string& line) {
  static const std::regex kNumber(R"(\b[0-9a-f]{12,}\b|[0-9]+([.:,-][0-9]+)*)");
  static const std::regex kSpaces(" +");
  std::string plain = std::regex_replace(std::regex_replace(line, kNumber, "#"), kSpaces, " ");
  return std::string(absl::StripSuffix(plain, " "));
}

bool IsLine(const std::string& wanted, const std::string& line) {
  const std::string plain = Plain(line);
  const std::string pattern = Plain(wanted);
  const std::vector<absl::string_view> parts = absl::StrSplit(pattern, kAny);
  absl::string_view rest = plain;
  if (!absl::ConsumePrefix(&rest, parts.front())) return false;
  for (const absl::string_view part : std::span(parts).subspan(1)) {
    const size_t place = rest.find(part);
    if (place == absl::string_view::npos) return false;
    rest.remove_prefix(place + part.size());
  }
  return rest.empty() || (parts.size() > 1 && absl::EndsWith(plain, parts.back()));
}

bool AreLines(std::span<const std::string> wanted, std::span<const std::string> lines) {
  if (wanted.empty()) return lines.empty();
  if (wanted.front() == kAny) {
    for (size_t skipped = 0; skipped <= lines.size(); ++skipped)
      if (AreLines(wanted.subspan(1), lines.subspan(skipped))) return true;
    return false;
  }
  return !lines.empty() && IsLine(wanted.front(), lines.front()) &&
         AreLines(wanted.subspan(1), lines.subspan(1));
}

// What was printed by both streams, as a terminal shows it.
std::vector<std::string> LinesOf(const Outcome& outcome) {
  std::vector<std::string> lines = absl::StrSplit(outcome.out, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

TEST(TutorialTest, ThePageKnowsWhatLinesAre) {
  EXPECT_TRUE(IsLine("r-1  converged  23.3 s", "r-2  converged 1,007.25 s "));
  EXPECT_FALSE(IsLine("r-1  converged", "r-1  failed"));
  EXPECT_TRUE(IsLine("to …/package", "to /tmp/x/package"));
  EXPECT_FALSE(IsLine("to …/package", "to /tmp/x/package of"));
  EXPECT_TRUE(AreLines(std::vector<std::string>{"a", "…", "b"},
                       std::vector<std::string>{"a", "c", "d", "b"}));
  EXPECT_FALSE(
      AreLines(std::vector<std::string>{"a", "…", "b"}, std::vector<std::string>{"a", "b", "c"}));
}

TEST(TutorialTest, EveryCommandPrintsWhatThePageSays) {
  Site site;
  site.Export(absl::StrCat("PATH=", site.Path("bin"), ":/usr/bin:/bin"));
  site.Export("ASSAY_OUTPUT=table");
  site.Export("COLUMNS=110");
  std::filesystem::copy(absl::StrCat(SOURCES, "/deploy/rounds"), site.Path("share/assay/rounds"),
                        std::filesystem::copy_options::recursive);
  LogTail output(site.Path("dev.fifo"));
  const ProcessId dev = site.Start({site.Program("assay"), "dev"}, output.path());
  ASSERT_TRUE(output.WaitFor("Ctrl-C ends it").has_value());
  const absl::StatusOr<std::string> page = ReadFile(absl::StrCat(SOURCES, "/docs/tutorial.md"));
  ASSERT_THAT(page, IsOk());

  int command_count = 0;
  for (const Step& step : StepsOf(*page)) {
    if (!step.file.empty()) {
      WriteFile(site.Path(step.file), step.text);
      continue;
    }
    ++command_count;
    const Outcome outcome =
        site.RunProgram({"/bin/bash", "-c", absl::StrCat("exec 2>&1; ", step.command)});
    const bool is_error = absl::StrContains(absl::StrJoin(step.lines, "\n"), ": error ");
    EXPECT_EQ(outcome.exit_code != 0, is_error) << step.command << "\n" << outcome.Text();
    EXPECT_TRUE(AreLines(step.lines, LinesOf(outcome)))
        << "docs/tutorial.md:" << step.line << ": " << step.command << " prints\n"
        << outcome.Text();
  }
  EXPECT_GT(command_count, 10);
  EXPECT_THAT(SignalGroup(dev, SIGINT), IsOk());
  EXPECT_THAT(WaitForExit(dev, kPatience), IsOkAndHolds(0));
}

}  // namespace
}  // namespace assay::testing
