#include "worker/agent/log_tail.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

class LogTailTest : public ::testing::Test {
 protected:
  void Append(const std::string& bytes) {
    const UniqueFd fd(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    ASSERT_THAT(WriteAll(fd.get(), bytes), IsOk());
  }
  static std::vector<std::string> Texts(const absl::StatusOr<std::vector<TailLine>>& lines) {
    std::vector<std::string> texts;
    EXPECT_THAT(lines, IsOk());
    if (lines.ok())
      for (const TailLine& line : *lines)
        texts.push_back(line.text);
    return texts;
  }

  const TempDir dir_;
  const std::string path_ = dir_.Path("result_1.txt");
};

TEST_F(LogTailTest, AFileThatIsNotThereYetHasNoLines) {
  LogTail tail(path_, 0, 0);
  EXPECT_THAT(Texts(tail.Read(false)), IsEmpty());
  Append("first\n");
  EXPECT_THAT(Texts(tail.Read(false)), ElementsAre("first"));
}

TEST_F(LogTailTest, ALineCountsOnceItHasEnded) {
  LogTail tail(path_, 0, 0);
  Append("one\ntw");
  EXPECT_THAT(Texts(tail.Read(false)), ElementsAre("one"));
  EXPECT_THAT(Texts(tail.Read(false)), IsEmpty());
  Append("o\n\nfour");
  EXPECT_THAT(Texts(tail.Read(false)), ElementsAre("two", ""));
  EXPECT_THAT(Texts(tail.Read(true)), ElementsAre("four"));
  EXPECT_THAT(Texts(tail.Read(true)), IsEmpty());
}

TEST_F(LogTailTest, AllBytesButTheLineEndAreKept) {
  LogTail tail(path_, 0, 0);
  const std::string zero("a\0b", 3);
  Append("crlf\r\nlone\rcr\n" + zero + "\n\xff\xfe\n");
  EXPECT_THAT(Texts(tail.Read(false)), ElementsAre("crlf\r", "lone\rcr", zero, "\xff\xfe"));
}

TEST_F(LogTailTest, NumbersAndOffsetsAllowToCarryOn) {
  Append("one\ntwo\nthree\n");
  LogTail first(path_, 0, 0);
  const absl::StatusOr<std::vector<TailLine>> lines = first.Read(false);
  ASSERT_THAT(lines, IsOk());
  ASSERT_EQ(lines->size(), 3U);

  LogTail second(path_, (*lines)[1].end_offset, (*lines)[1].line);
  const absl::StatusOr<std::vector<TailLine>> rest = second.Read(false);

  ASSERT_THAT(rest, IsOk());
  ASSERT_EQ(rest->size(), 1U);
  EXPECT_EQ((*rest)[0].text, "three");
  EXPECT_EQ((*rest)[0].line, 3);
}

TEST_F(LogTailTest, AVeryLongLineIsCutButCountsAsOne) {
  LogTail tail(path_, 0, 0);
  Append(std::string(3 << 20, 'x') + "\nnext\n");
  const absl::StatusOr<std::vector<TailLine>> lines = tail.Read(false, /*bytes_max=*/1 << 10);
  ASSERT_THAT(lines, IsOk());
  ASSERT_EQ(lines->size(), 1U + (lines->size() > 1 ? 1U : 0U));
  EXPECT_EQ((*lines)[0].text.size(), static_cast<size_t>(kLineBytesMax));
  if (lines->size() == 1) {
    EXPECT_THAT(Texts(tail.Read(false)), ElementsAre("next"));
  }
}

TEST_F(LogTailTest, AFileThatShrinksIsReported) {
  LogTail tail(path_, 0, 0);
  Append("one\ntwo\n");
  ASSERT_THAT(tail.Read(false), IsOk());
  ASSERT_EQ(truncate(path_.c_str(), 3), 0);
  EXPECT_THAT(tail.Read(false), StatusIs(absl::StatusCode::kDataLoss));
}

// However the file grows, the lines are those of the whole.
TEST_F(LogTailTest, GrowthInAnyPiecesGivesTheSameLines) {
  const Stream random(11, Purpose::kTest);
  std::string whole;
  for (uint64_t i = 0; i < 20'000; ++i) {
    const uint32_t draw = random.Below(i, 12);
    whole.push_back(draw == 0 ? '\n' : draw == 1 ? '\r' : static_cast<char>('a' + draw));
  }
  LogTail tail(path_, 0, 0);
  std::string joined;
  uint64_t draw = 100'000;
  for (size_t at = 0; at < whole.size();) {
    const size_t n = 1 + random.Below(draw++, 500);
    Append(whole.substr(at, n));
    at += n;
    for (const std::string& text : Texts(tail.Read(false)))
      joined += text + "\n";
  }
  for (const std::string& text : Texts(tail.Read(true)))
    joined += text + "\n";

  if (whole.back() != '\n') whole.push_back('\n');
  EXPECT_EQ(joined, whole);
}

}  // namespace
}  // namespace assay::agent
