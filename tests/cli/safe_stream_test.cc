#include "cli/terminal/safe_stream.h"

#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace assay::cli {
namespace {

constexpr char kKey[] = "0123-secret";

// What arrives of `text`, written as pieces of `size` bytes.
std::string Arrives(const std::string& text, size_t size, const std::string& key = kKey) {
  std::ostringstream target;
  {
    SafeStream stream(&target, key);
    for (size_t at = 0; at < text.size(); at += size)
      stream << text.substr(at, size);
  }
  return target.str();
}

TEST(SafeStreamTest, TextArrivesHoweverItIsCut) {
  const std::string styled =
      absl::StrCat(StyleMark(kKey, Tone::kBad), "ü", StyleMark(kKey, Tone::kPlain));
  const std::string text = absl::StrCat("a\tb\n漢 \x1b[2J\x07\r\u202E \xFF", styled,
                                        "\xC2\x9B"
                                        "0m \xE6");
  const std::string expected =
      "a\tb\n漢 \\x1b[2J\\x07\\r\\u202e \\xff\033[31mü\033[0m\\u009b0m \\xe6";
  for (size_t size = 1; size <= text.size(); ++size)
    EXPECT_EQ(Arrives(text, size), expected) << size;
}

TEST(SafeStreamTest, NobodyStylesWithoutTheKey) {
  EXPECT_EQ(Arrives(StyleMark("another-key", Tone::kBad), 100), "\\xffanother-keyb");
  EXPECT_EQ(Arrives(StyleMark("", Tone::kBad), 100), "\\xffb");
  EXPECT_EQ(Arrives(StyleMark("", Tone::kBad), 100, ""), "\\xffb");
  EXPECT_EQ(Arrives("\xFF"
                    "0123-secretz",
                    100),
            "\\xff0123-secretz");
}

TEST(SafeStreamTest, SinglePutsAndNumbersPass) {
  std::ostringstream target;
  SafeStream stream(&target, kKey);

  stream.put('x');
  stream << 42 << '\n' << std::flush;

  EXPECT_EQ(target.str(), "x42\n");
}

}  // namespace
}  // namespace assay::cli
