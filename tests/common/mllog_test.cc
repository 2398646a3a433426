#include "common/mllog.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/json_reader.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ------------------------------------------------------------------------------------- writing

TEST(MllogWriterTest, WritesTheReferencesBytes) {
  const MllogRecord record = {.time_ms = 1603314876927,
                              .event_type = MllogEventType::kPointInTime,
                              .key = "eval_error",
                              .value = 0.12387251853942871,
                              .file = "train.py",
                              .lineno = 158,
                              .metadata = {{"epoch_num", 63}}};

  EXPECT_EQ(FormatMllog(record),
            ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1603314876927, \"event_type\": "
            "\"POINT_IN_TIME\", \"key\": \"eval_error\", \"value\": 0.12387251853942871, "
            "\"metadata\": {\"file\": \"train.py\", \"lineno\": 158, \"epoch_num\": 63}}");
}

TEST(MllogWriterTest, PublishedLinesSurviveReadingAndWriting) {
  // Lines of published logs, contact data left out.
  const char* lines[] = {
      ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1602813137193, \"event_type\": "
      "\"INTERVAL_END\", \"key\": \"run_stop\", \"value\": null, \"metadata\": {\"file\": "
      "\"train.py\", \"lineno\": 279, \"status\": \"success\"}}",
      ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1602813137193, \"event_type\": "
      "\"POINT_IN_TIME\", \"key\": \"opt_betas\", \"value\": [0.9, 0.999], \"metadata\": "
      "{\"file\": \"a.py\", \"lineno\": 9}}",
      ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1602813137193, \"event_type\": "
      "\"POINT_IN_TIME\", \"key\": \"tracked_stats\", \"value\": {\"throughput\": "
      "318.2936730220408, \"lr\": 1e-06, \"loss\": NaN}, \"metadata\": {\"file\": \"\\u00e9.py\", "
      "\"lineno\": 9, \"step\": 4}}"};
  for (const char* line : lines) {
    const JsonValue object = ParseJson(absl::string_view(line).substr(kMllogToken.size())).value;
    EXPECT_EQ(absl::StrCat(kMllogToken, DumpJson(object)), line);
  }
}

TEST(MllogWriterTest, CallersFieldsReplaceFileAndLine) {
  const std::string line = FormatMllog(
      {.key = "k", .file = "a", .lineno = 1, .metadata = {{"lineno", 7}, {"x", JsonList{1, "b"}}}});

  EXPECT_THAT(line, HasSubstr("\"metadata\": {\"file\": \"a\", \"lineno\": 7, \"x\": [1, \"b\"]}"));
}

TEST(MllogWriterTest, StampsEventsWithItsClockAndTheCallSite) {
  std::vector<std::string> lines;
  int64_t now_ms = 5;
  MllogWriter writer([&] { return now_ms; },
                     [&](absl::string_view line) { lines.emplace_back(line); });

  writer.Start("init_start");
  now_ms = 6;
  writer.End("init_stop");
  writer.Event("seed", 9);

  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], HasSubstr("\"time_ms\": 5, \"event_type\": \"INTERVAL_START\", \"key\": "
                                  "\"init_start\", \"value\": null"));
  EXPECT_THAT(lines[0], HasSubstr("mllog_test.cc\", \"lineno\": "));
  EXPECT_EQ(lines[0].back(), '\n');
  EXPECT_THAT(lines[1], HasSubstr("\"time_ms\": 6, \"event_type\": \"INTERVAL_END\""));
  EXPECT_THAT(lines[2], HasSubstr("POINT_IN_TIME\", \"key\": \"seed\", \"value\": 9"));
}

// ------------------------------------------------------------------------------------- reading

std::vector<std::string> Lines(absl::string_view bytes) {
  std::vector<std::string> result;
  MllogLines lines(bytes);
  for (absl::string_view line; lines.Next(&line);)
    result.emplace_back(line);
  return result;
}

TEST(MllogLinesTest, OnlyLfCrLfAndCrEndALine) {
  EXPECT_THAT(Lines("a\nb\r\nc\rd"), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(Lines("a\n\nb\n"), ElementsAre("a", "", "b"));
  EXPECT_THAT(Lines("\r\r\n\n"), ElementsAre("", "", ""));
  EXPECT_THAT(Lines("a\vb\fc\x85 d\x1c"), ElementsAre("a\vb\fc\x85 d\x1c"));
  EXPECT_THAT(Lines(""), ElementsAre());
}

constexpr char kGood[] = "{\"time_ms\": 12, \"key\": \"k\", \"value\": 1, \"metadata\": {}}";

MllogOutcome OutcomeOf(const std::string& line) {
  return ReadMllogLine(line).outcome;
}

// "text" of every line, "!" where it was too long.
std::vector<std::string> Streamed(absl::string_view bytes, size_t piece_bytes) {
  std::vector<std::string> lines;
  const auto sink = [&](absl::string_view text, bool is_too_long) {
    lines.push_back(is_too_long ? "!" : std::string(text));
  };
  MllogLineStream stream;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece_bytes, bytes.size())))
    stream.Add(bytes.substr(0, piece_bytes), sink);
  stream.End(sink);
  return lines;
}

TEST(MllogLineStreamTest, CutsAsMllogLinesDoesWhateverThePieces) {
  for (const char* text : {"", "\n", "\r", "\r\n", "a", "a\n", "a\r\nb", "a\r\rb\n\nc", "\r\n\r\n",
                           "\n\ra", "abc\rdef\nghi\r\njkl\r", "a\x0b\x85z\n"}) {
    std::vector<std::string> expected;
    MllogLines lines(text);
    for (absl::string_view line; lines.Next(&line);)
      expected.emplace_back(line);
    for (const int piece_bytes : {1, 2, 3, 5, 100})
      EXPECT_EQ(Streamed(text, static_cast<size_t>(piece_bytes)), expected)
          << piece_bytes << " of " << text;
  }
}

TEST(MllogLineStreamTest, ALineWithoutEndTakesNoMoreThanTheLimit) {
  const std::string filler(kMllogLineBytesMax, 'x');
  for (const size_t piece_bytes : {size_t{1} << 16, kMllogLineBytesMax - 5, 4 * filler.size()}) {
    // The token begins before the limit and ends behind it, or comes first, or much later.
    EXPECT_THAT(Streamed(absl::StrCat(filler.substr(4), ":::MLLOG {}\nb"), piece_bytes),
                ElementsAre("!", "b"));
    EXPECT_THAT(Streamed(absl::StrCat(":::MLLOG ", filler, "\nb"), piece_bytes),
                ElementsAre("!", "b"));
    EXPECT_THAT(Streamed(absl::StrCat(filler, filler, ":::MLLOG \nb"), piece_bytes),
                ElementsAre("!", "b"));
    EXPECT_THAT(Streamed(absl::StrCat(filler, filler, ":::MLLOG\nb"), piece_bytes),
                ElementsAre("", "b"));
  }
}

TEST(ReadMllogLineTest, CutsToTheLastToken) {
  const std::string line = absl::StrCat("  0: :::MLLOG broken :::MLLOG ", kGood, " \t\x85\xa0\x1f");

  const MllogLine read = ReadMllogLine(line);

  EXPECT_EQ(read.outcome, MllogOutcome::kRecord);
  EXPECT_EQ(read.time_ms, 12);
  EXPECT_EQ(read.key_json, "\"k\"");
  EXPECT_EQ(read.value_json, "1");
  EXPECT_EQ(read.metadata_json, "{}");
}

TEST(ReadMllogLineTest, OtherPrefixesAreNoRecords) {
  for (const char* prefix : {":::MLLOG", ":::MLLOG\t", ":::mllog ", ":::MLL ", "::MLLOG ", ""}) {
    EXPECT_EQ(OutcomeOf(absl::StrCat(prefix, kGood)), MllogOutcome::kNoRecord) << prefix;
  }
}

TEST(ReadMllogLineTest, ATokenAloneIsAParseErrorBecauseStripEatsItsSpace) {
  EXPECT_EQ(OutcomeOf("text :::MLLOG "), MllogOutcome::kParseError);
}

struct LineCase {
  const char* json;
  MllogOutcome outcome;
  const char* exception;
};

constexpr LineCase kLines[] = {
    {"null", MllogOutcome::kParseError, ""},
    {"{}", MllogOutcome::kCrash, "KeyError"},
    {"[]", MllogOutcome::kCrash, "TypeError"},
    {"3", MllogOutcome::kCrash, "TypeError"},
    {"\"s\"", MllogOutcome::kCrash, "TypeError"},
    {"{\"key\": 1, \"value\": 1, \"metadata\": 1}", MllogOutcome::kCrash, "KeyError"},
    {"{\"time_ms\": 1, \"value\": 1, \"metadata\": 1}", MllogOutcome::kCrash, "KeyError"},
    {"{\"time_ms\": 1, \"key\": 1, \"metadata\": 1}", MllogOutcome::kCrash, "KeyError"},
    {"{\"time_ms\": 1, \"key\": 1, \"value\": 1}", MllogOutcome::kCrash, "KeyError"},
    // The time is converted before the other members are looked for.
    {"{\"time_ms\": \"abc\"}", MllogOutcome::kParseError, ""},
    {"{\"time_ms\": null}", MllogOutcome::kCrash, "TypeError"},
    {"{\"time_ms\": []}", MllogOutcome::kCrash, "TypeError"},
    {"{\"time_ms\": 1, \"key\": 1, \"value\": 1, \"metadata\": 1} x", MllogOutcome::kParseError,
     ""},
    {"{\"time_ms\": 1, \"key\": 1, \"value\": 1, \"metadata\": 1,}", MllogOutcome::kParseError, ""},
    {"{\"time_ms\": 1, \"key\": null, \"value\": 1, \"metadata\": 1}", MllogOutcome::kRecord, ""},
    {"{\"time_\\u006ds\": 1, \"key\": 1, \"value\": 1, \"metadata\": 1}", MllogOutcome::kRecord,
     ""},
    {"{\"time_ms\": 1, \"key\": {}, \"value\": 1, \"metadata\": 1, \"key\": 2}",
     MllogOutcome::kRecord, ""},
};

TEST(ReadMllogLineTest, HasThreeOutcomes) {
  for (const LineCase& c : kLines) {
    const std::string line = absl::StrCat(kMllogToken, c.json);
    const MllogLine read = ReadMllogLine(line);
    EXPECT_EQ(read.outcome, c.outcome) << c.json;
    if (c.outcome != MllogOutcome::kCrash) continue;
    EXPECT_STREQ(read.problem, c.exception) << c.json;
  }
}

TEST(ReadMllogLineTest, DeepNestingCrashesTheReferenceButNotUs) {
  EXPECT_STREQ(ReadMllogLine(absl::StrCat(kMllogToken, std::string(100000, '['))).problem,
               "RecursionError");
  EXPECT_STREQ(
      ReadMllogLine(absl::StrCat(kMllogToken, "{\"value\": ", std::string(100000, '['))).problem,
      "RecursionError");
}

TEST(ReadMllogLineTest, TimesConvertAsPythonFloats) {
  const auto time_of = [](const std::string& json) {
    const std::string line = absl::StrCat(kMllogToken, "{\"time_ms\": ", json,
                                          ", \"key\": 1, \"value\": 1, \"metadata\": 1}");
    const MllogLine read = ReadMllogLine(line);
    return read.outcome == MllogOutcome::kRecord ? read.time_ms : -77;
  };

  EXPECT_EQ(time_of("1700000000000"), 1700000000000);
  EXPECT_EQ(time_of("-5"), -5);
  EXPECT_EQ(time_of("1.5e3"), 1500);
  EXPECT_EQ(time_of("true"), 1);
  EXPECT_EQ(time_of("\"1_000\""), 1000);
  EXPECT_EQ(time_of("\"0x10\""), -77);
  EXPECT_EQ(time_of("12345678901234567890123"), 12345678901234567890123.0);
  EXPECT_TRUE(std::isnan(time_of("NaN")));
  EXPECT_TRUE(std::isinf(time_of("1e999")));
  EXPECT_EQ(time_of("1" + std::string(400, '0')), -77);  // OverflowError
}

TEST(ReadMllogLineTest, KeysComeAsText) {
  const auto key_of = [](const std::string& json) -> std::string {
    const std::string line = absl::StrCat(kMllogToken, "{\"time_ms\": 1, \"key\": ", json,
                                          ", \"value\": 1, \"metadata\": 1}");
    std::string storage;
    const absl::string_view key = MllogKey(ReadMllogLine(line), &storage);
    return key.data() == nullptr ? "(none)" : std::string(key);
  };

  EXPECT_EQ(key_of("\"run_start\""), "run_start");
  EXPECT_EQ(key_of("\"run\\u005fstart\""), "run_start");
  EXPECT_EQ(key_of("\"\xe9\""), "\u00e9");
  EXPECT_EQ(key_of("\"\""), "");
  EXPECT_EQ(key_of("null"), "(none)");
  EXPECT_EQ(key_of("{}"), "(none)");
}

// What Python 3.11 says.
TEST(PythonFloatTest, AgreesWithPython) {
  const std::pair<const char*, double> good[] = {{" 1 ", 1},
                                                 {"\u0085"
                                                  "1\u0085",
                                                  1},
                                                 {"\u2003"
                                                  "1",
                                                  1},
                                                 {"1.5_5", 1.55},
                                                 {"1e1_0", 1e10},
                                                 {".5", 0.5},
                                                 {"5.", 5},
                                                 {"+1", 1},
                                                 {"1e+5", 1e5},
                                                 {"\u0661\u0662", 12},
                                                 {"\uff11e\uff12", 100},
                                                 {"1_000.0_1e1_0", 10000100000000.0},
                                                 {"1e999", HUGE_VAL},
                                                 {"-inf", -HUGE_VAL},
                                                 {"InFinity", HUGE_VAL}};
  for (const auto& [text, expected] : good) {
    double value = 0;
    EXPECT_TRUE(PythonFloat(text, &value)) << text;
    EXPECT_EQ(value, expected) << text;
  }
  for (const char* text : {"",
                           "  ",
                           ".",
                           "1e",
                           "+-1",
                           "infinit",
                           "0x10",
                           "1d5",
                           "1 2",
                           "1__0",
                           "_1",
                           "1_",
                           "1_.5",
                           "1._5",
                           "1e_1",
                           "\x1c"
                           "1",
                           "1\x1f",
                           "\u2212"
                           "1",
                           "a\u00e9",
                           "in_f",
                           "++1",
                           "nan1",
                           "-"}) {
    double value = 0;
    EXPECT_FALSE(PythonFloat(text, &value)) << text;
  }
  double value = 0;
  EXPECT_TRUE(PythonFloat("+NaN", &value));
  EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace assay
