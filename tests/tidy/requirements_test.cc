// The tables of requirements (docs/requirements-*.md) name tests: all of them exist.

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

std::vector<std::string> LinesOf(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    lines.push_back(line);
  return lines;
}

// The tests of each suite, by what their sources say.
std::map<std::string, std::set<std::string>> Tests() {
  std::map<std::string, std::set<std::string>> tests;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator("tests")) {
    const std::string extension = entry.path().extension();
    if (extension != ".cc" && extension != ".h") continue;
    std::string text;
    for (const std::string& line : LinesOf(entry.path()))
      absl::StrAppend(&text, line, " ");
    static const std::regex kTest(R"((?:TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*(\w+),\s*(\w+)\))");
    for (std::sregex_iterator at(text.begin(), text.end(), kTest), end; at != end; ++at)
      tests[(*at)[1]].insert((*at)[2]);
  }
  return tests;
}

// What stands in `backquotes`.
std::vector<std::string> QuotedIn(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '`');
  std::vector<std::string> quoted;
  for (size_t i = 1; i + 1 < parts.size(); i += 2)
    quoted.push_back(parts[i]);
  return quoted;
}

std::vector<std::string> CellsOf(absl::string_view row) {
  return absl::StrSplit(absl::StripSuffix(absl::StripPrefix(row, "|"), "|"), '|');
}

// Words that may be no test: of anything but letters and numbers, or with a small letter first.
bool IsNameLike(const std::string& word) {
  static const std::regex kName(R"([A-Z][A-Za-z0-9]+(\.[A-Z]\w+)?)");
  return std::regex_match(word, kName);
}

TEST(RequirementsTest, NamedTestsExist) {
  const std::map<std::string, std::set<std::string>> tests = Tests();
  std::set<std::string> names = {"Inotify"};  // an instance of a suite
  for (const auto& [suite, of_suite] : tests)
    names.insert(of_suite.begin(), of_suite.end());
  std::vector<std::string> missing;
  for (const fs::directory_entry& entry : fs::directory_iterator("docs")) {
    if (!absl::StartsWith(entry.path().filename().string(), "requirements-")) continue;
    for (const std::string& line : LinesOf(entry.path())) {
      if (!absl::StartsWith(line, "|")) continue;
      for (const std::string& word : QuotedIn(CellsOf(line).back())) {
        if (!IsNameLike(word)) continue;
        const std::vector<std::string> parts = absl::StrSplit(word, '.');
        const auto suite = tests.find(parts[0]);
        const bool is_there = parts.size() == 2
                                  ? suite != tests.end() && suite->second.count(parts[1]) > 0
                                  : suite != tests.end() || names.count(word) > 0;
        if (!is_there) missing.push_back(absl::StrCat(entry.path().string(), ": ", word));
      }
    }
  }

  EXPECT_THAT(missing, IsEmpty());
}

// Each number of the witness's specification has its row.
TEST(RequirementsTest, NoNumberOfTheWitnessIsLeftOut) {
  std::set<std::string> numbers;
  for (const std::string& line : LinesOf("docs/requirements-witness.md")) {
    if (!absl::StartsWith(line, "| ")) continue;
    static const std::regex kNumber(R"([A-Z][0-9]+\b)");
    const std::string head = CellsOf(line).front();
    for (std::sregex_iterator at(head.begin(), head.end(), kNumber), end; at != end; ++at)
      numbers.insert(at->str());
  }
  std::vector<std::string> wanted;
  const std::vector<std::pair<char, int>> specified = {
      {'W', 10}, {'C', 5}, {'B', 4}, {'K', 6}, {'P', 4}, {'Q', 2}, {'T', 4}, {'E', 4}, {'S', 8}};
  for (const auto& [letter, count] : specified)
    for (int i = 1; i <= count; ++i)
      wanted.push_back(absl::StrCat(std::string(1, letter), i));

  EXPECT_THAT(numbers, IsSupersetOf(wanted));
}

}  // namespace
}  // namespace assay
