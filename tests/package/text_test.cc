#include "common/package/text.h"

#include <string>

#include "gtest/gtest.h"

namespace assay::package {
namespace {

TEST(PrintableTest, KeepsTextAndEscapesTheRest) {
  EXPECT_EQ(Printable("Jülich 10\u20131 \xF0\x9F\x98\x80"), "Jülich 10\u20131 \xF0\x9F\x98\x80");
  EXPECT_EQ(Printable("a\nb\x1b[0m\x7f"), "a\\x0ab\\x1b[0m\\x7f");
  EXPECT_EQ(Printable(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(Printable("\xFF\xC3"), "\\xff\\xc3");
  EXPECT_EQ(Printable("\u202Eabc\u0085"), "\\xe2\\x80\\xaeabc\\xc2\\x85");
}

TEST(PrintableTest, CutsLongTexts) {
  EXPECT_EQ(Printable("abcdef", 3), "abc...");
  EXPECT_EQ(Printable("abc", 3), "abc");
}

TEST(PythonIntTest, ReadsWhatPythonReads) {
  const std::pair<const char*, const char*> kGood[] = {
      {"12", "12"},
      {" 12\n", "12"},
      {"+12", "12"},
      {"-012", "-12"},
      {"-0", "0"},
      {"1_000", "1000"},
      {"007", "7"},
      {"\x1c"
       "5",
       "5"},
      {"123456789012345678901234567890", "123456789012345678901234567890"}};
  for (const auto& [text, digits] : kGood)
    EXPECT_EQ(PythonInt(text), digits) << text;
  for (const char* text :
       {"", " ", "+", "--1", "1.5", "1e3", "0x10", "_1", "1_", "1__0", "1 2", "abc", "+ 1"})
    EXPECT_EQ(PythonInt(text), std::nullopt) << text;
  EXPECT_TRUE(PythonInt(std::string(4300, '9')).has_value());
  EXPECT_FALSE(PythonInt(std::string(4301, '9')).has_value());
}

}  // namespace
}  // namespace assay::package
