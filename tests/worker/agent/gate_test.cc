// What notifications miss and a gate does not: data that came into memory, or was read from its
// device, by ways on which nobody opens or reads a file (W2, W4, W5 of the witness's
// specification).

#include "worker/agent/gate.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/process.h"
#include "tests/support/await_writer.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/agent/run_fixture.h"
#include "worker/agent/device_reads.h"
#include "worker/agent/reader_gate.h"
#include "worker/agent/touch_monitor.h"

namespace assay::agent {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::AwaitWriter;
using ::testing::Contains;
using testing::FakeClock;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::IsOkAndHolds;
using ::testing::Not;
using testing::TempDir;

constexpr int64_t kFileBytes = 256 << 10;
constexpr int kFileCount = 4;

// Who reads past the gate has these from before it is closed.
struct Accomplice {
  int fd = -1;         // of the file
  int direct_fd = -1;  // with O_DIRECT
  void* map = nullptr;
  DeviceRange range;  // where the file begins on its disk
  std::string node;   // of that disk
};

struct Way {
  const char* name;
  bool is_past_the_cache = false;
  std::function<bool(const Accomplice&)> read;  // false: this machine has no such way
};
void PrintTo(const Way& way, std::ostream* out) {
  *out << way.name;
}

bool ReadInto(int fd, off_t offset) {
  void* buffer = nullptr;
  if (posix_memalign(&buffer, 4096, 65'536) != 0) return false;
  const bool has_read = pread(fd, buffer, 65'536, offset) == 65'536;
  free(buffer);
  return has_read;
}

std::vector<Way> Ways() {
  return {
      {"FaultOnAnOldMapping", false,
       [](const Accomplice& a) {
         for (int64_t i = 0; i < kFileBytes; i += 4096)
           if (static_cast<volatile char*>(a.map)[i] == 0) return false;
         return true;
       }},
      {"PopulateAnOldMapping", false,
       [](const Accomplice& a) { return madvise(a.map, kFileBytes, 22) == 0; }},  // POPULATE_READ
      {"ReadAheadOfAnOldDescriptor", false,
       [](const Accomplice& a) { return readahead(a.fd, 0, kFileBytes) == 0; }},
      {"ReadOfAnOldDescriptor", false, [](const Accomplice& a) { return ReadInto(a.fd, 0); }},
      {"DirectReadOfAnOldDescriptor", true,
       [](const Accomplice& a) { return a.direct_fd >= 0 && ReadInto(a.direct_fd, 0); }},
      {"DirectReadOfTheRawDevice", true,
       [](const Accomplice& a) {
         const UniqueFd disk(open(a.node.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
         return disk.is_open() && ReadInto(disk.get(), static_cast<off_t>(a.range.begin));
       }},
  };
}

class GateTest : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root may close a gate";
    ASSERT_THAT(MakeDirectories(dir_.Path("train")), IsOk());
    for (int i = 0; i < kFileCount; ++i) {
      ASSERT_THAT(WriteFileAtomic(File(i), std::string(kFileBytes, 'x')), IsOk());
      const UniqueFd fd(open(File(i).c_str(), O_RDONLY | O_CLOEXEC));
      ASSERT_EQ(posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
    }
    for (const std::string& pipe : {done_, judged_})
      ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    monitor_ = Arm();
    if (monitor_.ok() && monitor_->watched() != "file system")
      GTEST_SKIP() << "that of temporary files cannot be watched";
    ASSERT_THAT(monitor_, IsOk());
  }

  std::string File(int i) const { return dir_.Path("train/" + std::to_string(i)); }
  absl::StatusOr<TouchMonitor> Arm() {
    return TouchMonitor::Arm({.directories = {dir_.Path("train")}}, &clock_);
  }
  // Returns its process.
  pid_t Close() {
    absl::StatusOr<ReaderGate> gate =
        ReaderGate::Close({.program = STEP_RUNNER, .directories = {dir_.Path("train")}}, &clock_);
    EXPECT_THAT(gate, IsOk());
    const pid_t pid = gate.ok() ? gate->pid() : 0;
    monitor_->SetGate(std::move(gate));
    return pid;
  }
  bool HasBlocks() const { return RangesOf({File(0)}, absl::Seconds(1), RealClock()).ok(); }

  ProcessId Start(const std::string& script) {
    const absl::StatusOr<ProcessId> child =
        Spawn({.argv = {"/bin/sh", "-c", script + "; echo > " + done_ + "; read y < " + judged_}});
    EXPECT_THAT(child, IsOk());
    return *child;
  }
  std::optional<Touch> Judge(const ProcessId& child) {
    AwaitWriter(done_);
    const absl::StatusOr<std::optional<Touch>> touch = monitor_->Poll();
    EXPECT_THAT(touch, IsOk());
    const absl::StatusOr<ProcessId> judged =
        Spawn({.argv = {"/bin/sh", "-c", "echo > " + judged_}});
    EXPECT_THAT(judged, IsOk());
    EXPECT_THAT(WaitForExit(*judged, kPatience), IsOkAndHolds(0));
    EXPECT_THAT(WaitForExit(child, kPatience), IsOk());
    return touch.ok() ? *touch : std::nullopt;
  }
  // As the run reads its data.
  std::optional<Touch> Read(int file) { return Judge(Start("cat " + File(file) + " > /dev/null")); }

  static std::vector<std::string> CodesOf(const Touch& touch) {
    std::vector<std::string> codes;
    for (const WitnessHole& hole : touch.holes)
      codes.push_back(hole.code);
    return codes;
  }

  const TempDir dir_;
  const std::string done_ = dir_.Path("done");
  const std::string judged_ = dir_.Path("judged");
  FakeClock clock_;
  absl::StatusOr<TouchMonitor> monitor_ = absl::UnknownError("not armed");
};

TEST_F(GateTest, TheFirstReaderIsHeldUntilNothingElseCanHaveBeenRead) {
  Close();
  const Stamp before = StampNow(RealClock());

  const std::optional<Touch> touch = Read(1);

  ASSERT_TRUE(touch.has_value());
  ASSERT_TRUE(touch->gate.has_value());
  EXPECT_EQ(touch->path, File(1));
  EXPECT_EQ(touch->access, "open");
  EXPECT_TRUE(touch->is_attributed);
  EXPECT_EQ(touch->stamp, touch->gate->stamp) << "of the moment before it was let in";
  EXPECT_GT(touch->stamp.mono_ns, before.mono_ns);
  EXPECT_EQ(touch->gate->checked_files, kFileCount);
  EXPECT_EQ(touch->gate->checked_bytes, kFileCount * kFileBytes);
  EXPECT_EQ(touch->gate->resident_pages, 0);
  EXPECT_EQ(touch->gate->is_exact, HasBlocks()) << touch->gate->why_inexact;
  EXPECT_EQ(touch->read_past, "");
  EXPECT_THAT(CodesOf(*touch), Not(AnyOf(Contains("W-NO-GATE"), Contains("W-DEVICE"))));
}

TEST_F(GateTest, AFileThatIsMappedIsHeldWhenItIsOpened) {
  Close();
  const std::optional<Touch> touch =
      Judge(Start("python3 -c 'import mmap; f = open(\"" + File(2) +
                  "\", \"rb\"); mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[5]'"));
  ASSERT_TRUE(touch.has_value());
  ASSERT_TRUE(touch->gate.has_value());
  EXPECT_EQ(touch->path, File(2));
}

TEST_P(GateTest, WhatIsReadPastEveryWatchSpeaksAgainstTheRun) {
  const absl::StatusOr<std::vector<DeviceRange>> ranges =
      RangesOf({File(0)}, absl::Seconds(1), RealClock());
  if (GetParam().is_past_the_cache && !ranges.ok())
    GTEST_SKIP() << "blocks cannot be told here: " << ranges.status();
  const UniqueFd fd(open(File(0).c_str(), O_RDONLY | O_CLOEXEC));
  const UniqueFd direct(open(File(0).c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  Accomplice accomplice{.fd = fd.get(), .direct_fd = direct.get(), .node = dir_.Path("disk")};
  accomplice.map = mmap(nullptr, kFileBytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(accomplice.map, MAP_FAILED);
  if (ranges.ok()) {
    accomplice.range = ranges->front();
    const uint32_t device = accomplice.range.device;
    ASSERT_EQ(
        mknod(accomplice.node.c_str(), S_IFBLK | 0600, makedev(device >> 20, device & 0xfffff)), 0);
  }
  monitor_ = Arm();  // who has it open already is none of the run's first touches
  ASSERT_THAT(monitor_, IsOk());
  Close();
  if (!GetParam().read(accomplice)) GTEST_SKIP() << "no such way here";

  const std::optional<Touch> touch = Read(3);

  munmap(accomplice.map, kFileBytes);
  ASSERT_TRUE(touch.has_value());
  if (touch->gate.has_value()) {
    EXPECT_THAT(touch->read_past, Not(IsEmpty()));
    EXPECT_THAT(CodesOf(*touch),
                Contains(GetParam().is_past_the_cache ? "W-DEVICE" : "W-RESIDENT"));
  } else {
    EXPECT_EQ(touch->path, File(0)) << "a kernel that tells of it: it is the first touch itself";
  }
}

INSTANTIATE_TEST_SUITE_P(Old, GateTest, ::testing::ValuesIn(Ways()),
                         [](const auto& way) { return way.param.name; });

// Staging is off the clock, so what it writes starts nothing; reading the copies does.
TEST_F(GateTest, OfCopiesTheFirstReadIsHeldAndNoWrite) {
  monitor_ =
      TouchMonitor::Arm({.directories = {dir_.Path("train")}, .is_read_only = true}, &clock_);
  ASSERT_THAT(monitor_, IsOk());
  absl::StatusOr<ReaderGate> gate = ReaderGate::Close(
      {.program = STEP_RUNNER, .directories = {dir_.Path("train")}, .are_copies = true}, &clock_);
  ASSERT_THAT(gate, IsOk());
  monitor_->SetGate(*std::move(gate));

  const std::optional<Touch> touch =
      Judge(Start("head -c 40960 /dev/zero > " + File(9) + "; mv " + File(9) + " " + File(8) +
                  "; cat " + File(2) + " > /dev/null"));

  ASSERT_TRUE(touch.has_value());
  EXPECT_TRUE(touch->is_attributed);
  EXPECT_EQ(touch->path, File(2));
  EXPECT_EQ(touch->access, "read");
  ASSERT_TRUE(touch->gate.has_value());
  EXPECT_EQ(touch->gate->checked_files, kFileCount + 1);
  EXPECT_EQ(touch->gate->resident_pages, 10) << "of the one that was just written";
  EXPECT_THAT(CodesOf(*touch), AllOf(Contains("W-STAGED"), Contains("W-RESIDENT")));
  EXPECT_EQ(touch->read_past, "") << "R-TIM-004 tells that";
}

// An agent of another run on this machine, a backup: they wait for nothing.
TEST_F(GateTest, SomebodyElseIsLetInAndAccusesNobody) {
  Close();
  const absl::StatusOr<ProcessId> parent =
      Spawn({.argv = {"/bin/sh", "-c",
                      "(read x < " + judged_ + "; cat " + File(0) + " > /dev/null; echo > " +
                          done_ + ") & "}});
  ASSERT_THAT(parent, IsOk());
  ASSERT_THAT(WaitForExit(*parent, kPatience), IsOkAndHolds(0));  // its child is init's now
  ASSERT_THAT(WaitForExit(*Spawn({.argv = {"/bin/sh", "-c", "echo > " + judged_}}), kPatience),
              IsOkAndHolds(0));
  AwaitWriter(done_);
  const absl::StatusOr<std::optional<Touch>> observed = monitor_->Poll();
  ASSERT_THAT(observed, IsOk());
  ASSERT_TRUE(observed->has_value());
  EXPECT_FALSE((*observed)->is_attributed);
  EXPECT_FALSE((*observed)->gate.has_value());

  const std::optional<Touch> touch = Read(1);

  ASSERT_TRUE(touch.has_value());
  EXPECT_TRUE(touch->is_attributed);
  ASSERT_TRUE(touch->gate.has_value());
  EXPECT_GT(touch->gate->others_count, 0);
  EXPECT_THAT(CodesOf(*touch), Contains("W-RESIDENT"));
  EXPECT_EQ(touch->read_past, "") << "it was seen who";
}

TEST_F(GateTest, AnotherNameOfTheFileIsNotHeldAndSaysSo) {
  ASSERT_EQ(link(File(0).c_str(), dir_.Path("link").c_str()), 0);
  Close();

  const std::optional<Touch> touch = Judge(Start("exec 5< " + dir_.Path("link")));

  ASSERT_TRUE(touch.has_value());
  EXPECT_EQ(touch->path, File(0));
  EXPECT_FALSE(touch->gate.has_value());
  EXPECT_EQ(touch->holes.front().code, "W-NO-GATE");
  EXPECT_THAT(touch->holes.front().why, HasSubstr("not held"));
}

TEST_F(GateTest, OneThatIsStoppedHoldsNobodyForLong) {
  const pid_t gate = Close();
  ASSERT_EQ(kill(gate, SIGSTOP), 0);
  const ProcessId reader = Start("exec 5< " + File(0));

  clock_.Advance(ReaderGate::kSilenceMax / 2);
  monitor_->LookAtGate();
  EXPECT_NE(monitor_->gate_fd(), -1);
  clock_.Advance(ReaderGate::kSilenceMax * 2);
  monitor_->LookAtGate();

  EXPECT_EQ(monitor_->gate_fd(), -1);
  const std::optional<Touch> touch = Judge(reader);
  ASSERT_TRUE(touch.has_value());
  EXPECT_TRUE(touch->is_attributed);
  EXPECT_EQ(touch->holes.front().code, "W-GATE-LOST");
}

TEST_F(GateTest, OneThatIsKilledHoldsNobody) {
  const pid_t gate = Close();
  ASSERT_EQ(kill(gate, SIGKILL), 0);

  const std::optional<Touch> touch = Judge(Start("exec 5< " + File(0)));

  ASSERT_TRUE(touch.has_value());
  EXPECT_EQ(touch->holes.front().code, "W-GATE-LOST");
  EXPECT_THAT(touch->holes.front().why, HasSubstr("has ended"));
}

TEST(GateAccountTest, WhereItCannotBeClosedThereIsAReason) {
  const TempDir dir;
  const RealClock clock;
  const absl::StatusOr<ReaderGate> gate =
      ReaderGate::Close({.program = STEP_RUNNER, .directories = {dir.Path("nowhere")}}, &clock);
  EXPECT_THAT(gate.status().message(), HasSubstr("nowhere"));
}

}  // namespace
}  // namespace assay::agent
