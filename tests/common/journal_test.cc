#include "common/journal.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/log.h"
#include "tests/support/temp_dir.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(JournalTest, RunsEntriesAndNodesOfARecordAreFields) {
  EXPECT_THAT(FieldsOf("time=2026-01-01T00:00:00Z level=info at=x.cc:1 run=runs/r-7 rank=0"),
              ElementsAre(Pair("ASSAY_RUN", "r-7")));
  EXPECT_THAT(
      FieldsOf("run=r-7: is judged without submission=e-4, worker=w0"),
      ElementsAre(Pair("ASSAY_RUN", "r-7"), Pair("ASSAY_ENTRY", "e-4"), Pair("ASSAY_NODE", "w0")));
  EXPECT_THAT(FieldsOf("node=\"a node\" entry=e-1 entry=e-2"),
              ElementsAre(Pair("ASSAY_NODE", "a node"), Pair("ASSAY_ENTRY", "e-1")));
}

// What others have said stands between quotation marks, and is no field of ours.
TEST(JournalTest, NobodyForgesAField) {
  EXPECT_THAT(FieldsOf("status=\"x run=r-1 \\\" run=r-2 \" peer=\" node=w1\""), IsEmpty());
  EXPECT_THAT(FieldsOf("status=\"x\\\\\" run=r-3"), ElementsAre(Pair("ASSAY_RUN", "r-3")));
  for (const char* text : {"", " ", "run=", "run", "=", "\"", "\\", "status=\"\\", "run=\""})
    EXPECT_THAT(FieldsOf(text), IsEmpty()) << text;
}

TEST(JournalTest, ADatagramHasALineForEachField) {
  const testing::TempDir dir;
  const std::string path = dir.Path("socket");
  const UniqueFd journal(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  CHECK(path.size() < sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  CHECK(bind(journal.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);

  EXPECT_TRUE(SendToJournal(path, {{"MESSAGE", "level=info run=r-7 a = b"}, {"ASSAY_RUN", "r-7"}}));

  std::array<char, 256> bytes{};
  const ssize_t size = recv(journal.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  ASSERT_GT(size, 0);
  EXPECT_EQ(std::string(bytes.data(), static_cast<size_t>(size)),
            "MESSAGE=level=info run=r-7 a = b\nASSAY_RUN=r-7\n");
}

TEST(JournalTest, WhereNobodyListensItIsNotGiven) {
  const testing::TempDir dir;
  EXPECT_FALSE(SendToJournal(dir.Path("socket"), {{"MESSAGE", "x"}}));
  EXPECT_FALSE(SendToJournal(std::string(200, 'x'), {{"MESSAGE", "x"}}));
}

}  // namespace
}  // namespace assay
