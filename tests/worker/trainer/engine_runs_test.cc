// Whole runs that choose engines, on a device faked on the CPU.

#include <sys/stat.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/exit_code.h"
#include "common/file.h"
#include "common/json_reader.h"
#include "tests/support/held_port.h"
#include "tests/support/status_matchers.h"
#include "tests/support/write_file.h"
#include "tests/worker/trainer/device_fixture.h"
#include "tests/worker/trainer/run_specs.h"
#include "worker/trainer/engines.h"
#include "worker/trainer/failure.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;
using ::testing::SizeIs;
using testing::WriteFile;

class EngineRunsTest : public testing::DeviceFixture {
 protected:
  v1::RunSpec ShortRun() const {
    v1::RunSpec run = Run();
    run.set_epoch_count_max(1);
    return run;
  }

  // What the library proposes on GPU `index`.
  static void Propose(const char* engines, int index = 0) {
    const std::string name =
        index == 0 ? "ASSAY_FAKE_ENGINES" : absl::StrCat("ASSAY_FAKE_ENGINES_", index);
    ASSERT_EQ(setenv(name.c_str(), engines, 1), 0);
  }

  std::string EnginesFile() const { return dir_.Path("result_1.txt.engines"); }
  EngineChoices Written() const {
    const absl::StatusOr<EngineChoices> engines = ReadEngines(EnginesFile());
    EXPECT_THAT(engines, IsOk());
    return engines.value_or(EngineChoices());
  }
};

auto AllAre(const std::string& engine) {
  return Field(&EngineChoices::choices,
               AllOf(Not(::testing::IsEmpty()), Each(Field(&EngineChoice::engine, engine))));
}

// In milliseconds since 1970, of the first event of this key.
int64_t TimeOf(const std::string& log, absl::string_view key) {
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    if (!absl::StrContains(line, absl::StrCat("\"", key, "\""))) continue;
    const JsonResult record = ParseJson(line.substr(line.find('{')));
    const JsonValue* const time = record.value.Find("time_ms");
    return time == nullptr ? -1 : time->AsInt64().value_or(-1);
  }
  return -1;
}

TEST_F(EngineRunsTest, TheQuickestAreStoredBeforeTheRunStarts) {
  Propose("a=30;b=10;c=20");
  ASSERT_THAT(Train(ShortRun()), IsOk());

  const EngineChoices engines = Written();
  EXPECT_THAT(engines, AllAre("b"));
  EXPECT_EQ(engines.device, "CPU");
  EXPECT_THAT(engines.choices, Each(Field(&EngineChoice::candidates_timed, 3)));
  struct stat status = {};
  ASSERT_EQ(stat(EnginesFile().c_str(), &status), 0);
  EXPECT_LE(int64_t{status.st_mtim.tv_sec} * 1000 + status.st_mtim.tv_nsec / 1'000'000,
            TimeOf(Log(), "run_start"));
}

TEST_F(EngineRunsTest, AReplacementTakesThoseOfTheRunThatItReplaces) {
  Propose("a=30;b=10;c=20");
  ASSERT_THAT(Train(ShortRun()), IsOk());
  const EngineChoices first = Written();
  ASSERT_THAT(RenameSynced(EnginesFile(), dir_.Path("stored")), IsOk());
  Propose("a=1;b=10;c=20");  // another quarter of an hour
  v1::RunSpec run = ShortRun();
  run.set_engine_choices_path(dir_.Path("stored"));

  ASSERT_THAT(Train(run), IsOk());

  EXPECT_EQ(Written(), first);
}

// It goes on to the same bits: with the same engines.
TEST_F(EngineRunsTest, AResumedRunGoesOnWithItsOwn) {
  Propose("a=30;b=10");
  ASSERT_THAT(Train(ShortRun()), IsOk());
  Propose("a=1;b=10");
  v1::RunSpec run = Run();
  run.set_epoch_count_max(2);

  ASSERT_THAT(Train(run, /*is_resumed=*/true), IsOk());

  EXPECT_THAT(Written(), AllAre("b"));
}

TEST_F(EngineRunsTest, FirstEnginesTimesNothingAndStoresNothing) {
  Propose("a=30;b=10");
  ASSERT_THAT(Train(ShortRun(), false, {.first_engines = true}), IsOk());

  EXPECT_FALSE(FileExists(EnginesFile()));
}

TEST_F(EngineRunsTest, OnAProcessorNothingIsStored) {
  v1::RunSpec run = ShortRun();
  run.mutable_trainer()->set_backend("onednn");
  ASSERT_THAT(Train(run), IsOk());

  EXPECT_FALSE(FileExists(EnginesFile()));
}

TEST_F(EngineRunsTest, AStoredFileThatIsNoneIsTheSpecsFault) {
  WriteFile(dir_.Path("stored"), "device: \"CPU\"\nnonsense");
  v1::RunSpec run = ShortRun();
  run.set_engine_choices_path(dir_.Path("stored"));

  const absl::Status status = Train(run);

  EXPECT_EQ(ExitCodeOf(status), ExitCode::kBadSpec);
  EXPECT_THAT(std::string(status.message()), HasSubstr("stored:2:"));
  EXPECT_THAT(Log(), Not(HasSubstr("run_start")));
}

// Each GPU by itself would take another: they would not compute to the same bits.
TEST_F(EngineRunsTest, AllRanksTakeTheEnginesOfRankZero) {
  Propose("a=30;b=10", 0);
  Propose("a=10;b=30", 1);
  const testing::HeldPort port;
  v1::RunSpec run = ShortRun();
  run.set_ranks_per_node(2);
  run.set_rendezvous_address(port.address());
  run.set_rendezvous_token("secret of this test");
  std::vector<absl::Status> statuses(2);
  std::vector<std::thread> threads;
  ::testing::internal::CaptureStderr();
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([this, rank, run, &statuses]() mutable {
      run.set_local_rank(rank);
      statuses[static_cast<size_t>(rank)] = Train(run);
    });
  for (std::thread& thread : threads)
    thread.join();
  const std::string log = ::testing::internal::GetCapturedStderr();

  EXPECT_THAT(statuses, Each(IsOk())) << log;
  EXPECT_THAT(Written(), AllAre("b"));
  EXPECT_THAT(log, AllOf(HasSubstr("configuration=\"b\" chosen=timed"),
                         HasSubstr("configuration=\"b\" chosen=stored"),
                         Not(HasSubstr("configuration=\"a\""))));
}

}  // namespace
}  // namespace assay
