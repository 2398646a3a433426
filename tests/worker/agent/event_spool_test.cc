#include "worker/agent/event_spool.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

v1::RunEvent Line(const std::string& text) {
  v1::RunEvent event;
  event.set_kind(v1::RunEvent::LOG_LINE);
  event.set_text(text);
  return event;
}

class EventSpoolTest : public ::testing::Test {
 protected:
  std::unique_ptr<EventSpool> Open(const EventSpool::Visitor& visit = nullptr) {
    absl::StatusOr<std::unique_ptr<EventSpool>> spool = EventSpool::Open(path_, visit);
    EXPECT_THAT(spool, IsOk());
    return *std::move(spool);
  }
  // Events 1..count, durable.
  void Fill(int count) {
    const std::unique_ptr<EventSpool> spool = Open();
    for (int i = 1; i <= count; ++i)
      spool->Append(Line(absl::StrCat("line ", i)), {.log_offset = 10 * i, .log_line = i});
    ASSERT_THAT(spool->Sync(), IsOk());
  }
  static std::vector<std::string> Texts(const absl::StatusOr<std::vector<v1::RunEvent>>& events) {
    std::vector<std::string> texts;
    EXPECT_THAT(events, IsOk());
    if (!events.ok()) return texts;
    for (const v1::RunEvent& event : *events)
      texts.push_back(absl::StrCat(event.seq(), ":", event.text()));
    return texts;
  }

  const TempDir dir_;
  const std::string path_ = dir_.Path("spool");
};

TEST_F(EventSpoolTest, NothingCanBeReadBeforeItIsDurable) {
  const std::unique_ptr<EventSpool> spool = Open();
  spool->Append(Line("a"), {});
  spool->Append(Line("b"), {});
  EXPECT_EQ(spool->last_seq(), 2);
  EXPECT_EQ(spool->durable_seq(), 0);
  EXPECT_THAT(Texts(spool->Read(1, {})), IsEmpty());

  ASSERT_THAT(spool->Sync(), IsOk());

  EXPECT_EQ(spool->durable_seq(), 2);
  EXPECT_THAT(Texts(spool->Read(1, {})), ElementsAre("1:a", "2:b"));
  EXPECT_THAT(Texts(spool->Read(2, {})), ElementsAre("2:b"));
  EXPECT_THAT(Texts(spool->Read(3, {})), IsEmpty());
}

TEST_F(EventSpoolTest, ACrashKeepsWhatWasSyncedAndItsPosition) {
  {
    const std::unique_ptr<EventSpool> spool = Open();
    spool->Append(Line("a"), {.log_offset = 2, .log_line = 1, .progress_offset = 5});
    ASSERT_THAT(spool->Sync(), IsOk());
    spool->Append(Line("lost"), {.log_offset = 7, .log_line = 2});
  }
  std::vector<std::string> seen;
  const std::unique_ptr<EventSpool> spool =
      Open([&seen](const v1::RunEvent& e) { seen.push_back(e.text()); });

  EXPECT_THAT(seen, ElementsAre("a"));
  EXPECT_EQ(spool->position(), (SourcePosition{2, 1, 5}));
  spool->Append(Line("b"), {});
  ASSERT_THAT(spool->Sync(), IsOk());
  EXPECT_THAT(Texts(spool->Read(1, {})), ElementsAre("1:a", "2:b"));
}

// Goal: however a crash tears the file, what remains is a prefix and the sequence goes on from
// there. How: cut the file at every byte of its last two records, reopen, append.
TEST_F(EventSpoolTest, ATornTailIsCutWhereverItTears) {
  Fill(5);
  const absl::StatusOr<std::string> whole = ReadFile(path_);
  ASSERT_THAT(whole, IsOk());
  const size_t record_bytes = whole->size() / 5;
  for (size_t size = whole->size() - 2 * record_bytes; size <= whole->size(); ++size) {
    ASSERT_THAT(WriteFileAtomic(path_, absl::string_view(*whole).substr(0, size)), IsOk());
    const auto kept = static_cast<int64_t>(size / record_bytes);
    {
      const std::unique_ptr<EventSpool> spool = Open();
      ASSERT_EQ(spool->durable_seq(), kept) << "cut at " << size;
      EXPECT_EQ(spool->position().log_line, kept);
      spool->Append(Line("new"), {});
      ASSERT_THAT(spool->Sync(), IsOk());
    }
    EXPECT_EQ(Open()->durable_seq(), kept + 1);
  }
}

TEST_F(EventSpoolTest, ADamagedRecordEndsTheFile) {
  Fill(5);
  const absl::StatusOr<std::string> whole = ReadFile(path_);
  ASSERT_THAT(whole, IsOk());
  const size_t record_bytes = whole->size() / 5;
  const Stream random(3, Purpose::kTest);
  for (uint64_t i = 0; i < 200; ++i) {
    std::string damaged = *whole;
    const size_t at = random.Below(2 * i, static_cast<uint32_t>(damaged.size()));
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.Below(2 * i + 1, 8)));
    ASSERT_THAT(WriteFileAtomic(path_, damaged), IsOk());
    EXPECT_EQ(Open()->durable_seq(), static_cast<int64_t>(at / record_bytes)) << "byte " << at;
  }
}

TEST_F(EventSpoolTest, BatchesKeepTheirLimitsAndMissNothing) {
  Fill(50);
  const std::unique_ptr<EventSpool> spool = Open();
  const int64_t record_bytes = *FileSize(path_) / 50;
  for (const BatchLimits limits :
       {BatchLimits{.event_count_max = 7}, BatchLimits{.bytes_max = 5 * record_bytes},
        BatchLimits{.bytes_max = 1}}) {
    int64_t next = 1;
    while (next <= 50) {
      const absl::StatusOr<std::vector<v1::RunEvent>> events = spool->Read(next, limits);
      ASSERT_THAT(events, IsOk());
      ASSERT_FALSE(events->empty());
      EXPECT_LE(static_cast<int>(events->size()), limits.event_count_max);
      int64_t bytes = 0;
      for (const v1::RunEvent& event : *events) {
        EXPECT_EQ(event.seq(), next++);
        bytes += static_cast<int64_t>(event.ByteSizeLong());
      }
      EXPECT_TRUE(events->size() == 1 || bytes <= limits.bytes_max);
    }
  }
}

TEST_F(EventSpoolTest, AFileDamagedUnderWayIsNotSent) {
  Fill(3);
  const std::unique_ptr<EventSpool> spool = Open();
  ASSERT_EQ(truncate(path_.c_str(), 10), 0);
  EXPECT_THAT(spool->Read(1, {}), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace assay::agent
