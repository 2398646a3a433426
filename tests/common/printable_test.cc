#include "common/printable.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/log.h"
#include "tests/support/temp_dir.h"

namespace assay {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(PrintableTest, WhatATerminalWouldObeyIsShown) {
  const struct {
    const char* name;
    std::string text;
    const char* shown;
  } cases[] = {
      {"plain", "a \"b\" \\ ü 漢 😀", "a \"b\" \\ ü 漢 😀"},
      {"colour", "\x1b[31mred", "\\x1b[31mred"},
      {"clipboard", "\x1b]52;c;QQ==\x07", "\\x1b]52;c;QQ==\\x07"},
      {"line", "a\nb\rc\td", "a\\nb\\rc\\td"},
      {"null", std::string("a\0b", 3), "a\\x00b"},
      {"delete", "a\x7f", "a\\x7f"},
      {"8-bit sequence",
       "\xC2\x9B"
       "31m",
       "\\u009b31m"},
      {"next line", "\xC2\x85", "\\u0085"},
      {"turned around", "\u202Eabc\u2066", "\\u202eabc\\u2066"},
      {"line separator", "\u2028", "\\u2028"},
      {"tag", "\U000E0041", "\\U000e0041"},
      {"bare C1 byte",
       "\x9B"
       "31m",
       "\\x9b31m"},
      {"no UTF-8", "a\xFF\xFE", "a\\xff\\xfe"},
      {"cut off", "\xE6\xBC", "\\xe6\\xbc"},
      {"overlong", "\xC0\x9B \xE0\x80\x9B", "\\xc0\\x9b \\xe0\\x80\\x9b"},
      {"surrogate", "\xED\xA0\x80", "\\xed\\xa0\\x80"},
      {"beyond", "\xF4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(Printable(c.text), c.shown) << c.name;
    EXPECT_EQ(Printable(Printable(c.text)), c.shown) << c.name;
  }
}

TEST(PrintableTest, ShortensByCodePoints) {
  EXPECT_EQ(Shortened("", 3), "");
  EXPECT_EQ(Shortened("äöü", 3), "äöü");
  EXPECT_EQ(Shortened("äöüx", 3), "äöü…");
  EXPECT_EQ(Shortened("a\xff\xffxy", 3), "a\xff\xff…");
  EXPECT_EQ(Shortened("ab\xc3", 2), "ab…");
}

TEST(LogTest, ARecordStaysOneLineWhateverItIsTold) {
  const testing::TempDir dir;
  const std::string path = dir.Path("log");
  const int kept = dup(STDERR_FILENO);
  ASSERT_NE(freopen(path.c_str(), "w", stderr), nullptr);
  LOG(ERROR) << "refused principal="
             << "x\ntime=2026-01-01T00:00:00.000Z level=info login=ok\x1b[2K";
  fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);

  const std::string text = ReadFile(path).value_or("");
  EXPECT_THAT(text, HasSubstr("principal=x\\ntime=2026"));
  EXPECT_THAT(text, EndsWith("\\x1b[2K\n"));
  EXPECT_EQ(text.find('\n'), text.size() - 1);
}

// What systemd does with stderr of a unit: JOURNAL_STREAM names its device and inode.
TEST(LogTest, ToTheJournalALineBeginsWithItsPriority) {
  testing::TempDir dir;
  const std::string path = dir.Path("log");
  const int kept = dup(STDERR_FILENO);
  ASSERT_NE(freopen(path.c_str(), "w", stderr), nullptr);
  struct stat info = {};
  EXPECT_EQ(fstat(STDERR_FILENO, &info), 0);
  setenv("JOURNAL_STREAM", absl::StrCat(info.st_dev, ":", info.st_ino).c_str(), 1);
  LOG(WARNING) << "run=r-7 to the journal";
  setenv("JOURNAL_STREAM", absl::StrCat(info.st_dev, ":", info.st_ino + 1).c_str(), 1);
  LOG(WARNING) << "run=r-7 to a file";
  unsetenv("JOURNAL_STREAM");
  fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);

  const std::vector<std::string> lines = absl::StrSplit(ReadFile(path).value_or(""), '\n');
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], StartsWith("<4>time="));
  EXPECT_THAT(lines[1], StartsWith("time="));
}

TEST(LogTest, AQuotedValueCannotPassForAnotherField) {
  EXPECT_EQ(Quoted("no such token"), "\"no such token\"");
  EXPECT_EQ(Quoted("x\" level=\"info"), "\"x\\\" level=\\\"info\"");
  EXPECT_EQ(Quoted("ends in \\"), "\"ends in \\\\\"");
  EXPECT_EQ(Quoted(absl::NotFoundError("no run r-1")), "\"NOT_FOUND: no run r-1\"");
}

}  // namespace
}  // namespace assay
