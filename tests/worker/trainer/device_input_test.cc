// Whole runs on a device faked on the CPU, which comes as a plug-in: batches that are prefetched
// while a step computes, and samples that the device keeps.

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/exit_code.h"
#include "common/file.h"
#include "common/json_reader.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/trainer/device_fixture.h"
#include "tests/worker/trainer/run_specs.h"
#include "worker/trainer/failure.h"

namespace assay {
namespace {

using ::testing::AllOf;
using testing::EvalErrorTexts;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::SetHyperparameter;

constexpr int kTrainSamples = testing::kDeviceTrainSamples,
              kEvalSamples = testing::kDeviceEvalSamples, kEpochs = testing::kDeviceEpochs;

// What a run leaves behind.
struct Outcome {
  std::vector<std::string> errors;
  std::string checkpoint;
  std::string log;
  int64_t read_bytes = 0, cached_samples = 0;
};

class DeviceInputTest : public testing::DeviceFixture {
 protected:
  // The last profile that the run wrote.
  std::optional<JsonValue> LastProfile() const {
    std::optional<JsonValue> last;
    const std::string text = ReadFile(dir_.Path("progress")).value_or("");
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      const JsonResult record = ParseJson(line);
      if (const JsonValue* found = record.value.Find("profile"); found != nullptr) last = *found;
    }
    return last;
  }

  static int64_t Count(const JsonValue& profile, const char* key) {
    const JsonValue* const value = profile.Find(key);
    return value == nullptr ? 0 : value->AsInt64().value_or(-1);
  }

  Outcome TrainWith(v1::RunSpec run, int cache_mib) {
    if (cache_mib > 0) SetHyperparameter(&run, "device_cache_mib", absl::StrCat(cache_mib));
    for (const char* name : {"result_1.txt", "result_1.txt.checkpoint", "progress"})
      EXPECT_THAT(RemoveTree(dir_.Path(name)), IsOk());
    EXPECT_THAT(Train(run), IsOk());
    Outcome outcome = {
        .errors = EvalErrorTexts(Log()),
        .checkpoint = ReadFile(dir_.Path("result_1.txt.checkpoint"), int64_t{1} << 30).value_or(""),
        .log = Log()};
    const std::optional<JsonValue> profile = LastProfile();
    EXPECT_TRUE(profile.has_value());
    if (!profile.has_value()) return outcome;
    outcome.read_bytes = Count(*profile, "read_bytes");
    outcome.cached_samples = Count(*profile, "cached_samples");
    return outcome;
  }
};

// A sample takes 256 KiB and its targets: 1 MiB holds three of training, 2 MiB all six of training
// and one of validation, 3 MiB all.
TEST_F(DeviceInputTest, TheCacheChangesNoBitAndSavesReading) {
  const Outcome expected = TrainWith(Run(), 0);
  ASSERT_EQ(expected.errors.size(), size_t{kEpochs});
  ASSERT_FALSE(expected.checkpoint.empty());
  EXPECT_EQ(expected.cached_samples, 0);
  EXPECT_EQ(expected.log.find("device_cache_mib"), std::string::npos);

  const struct {
    int mib;
    int64_t kept;
  } rows[] = {{1, 3}, {2, 7}, {3, kTrainSamples + kEvalSamples}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.mib);
    const Outcome actual = TrainWith(Run(), row.mib);

    EXPECT_EQ(actual.errors, expected.errors);
    EXPECT_TRUE(actual.checkpoint == expected.checkpoint);
    EXPECT_EQ(actual.cached_samples, row.kept * (kEpochs - 1));
    EXPECT_LT(actual.read_bytes, expected.read_bytes);
    if (row.mib == 3) {
      EXPECT_LE(kEpochs * actual.read_bytes, expected.read_bytes);
    }
    EXPECT_THAT(actual.log,
                HasSubstr(absl::StrCat("\"key\": \"device_cache_mib\", \"value\": ", row.mib)));
  }
}

TEST_F(DeviceInputTest, LateStreamsChangeNoBit) {
  const Outcome expected = TrainWith(Run(), 0);
  for (const char* late : {"calls", "copies", "calls copies"}) {
    SCOPED_TRACE(late);
    ASSERT_EQ(setenv("ASSAY_FAKE_LATE", late, 1), 0);
    const Outcome actual = TrainWith(Run(), 1);

    EXPECT_EQ(actual.errors, expected.errors);
    EXPECT_TRUE(actual.checkpoint == expected.checkpoint);
  }
}

// A resumed process begins with an empty cache.
TEST_F(DeviceInputTest, AResumedRunFillsTheCacheAnew) {
  const Outcome expected = TrainWith(Run(), 0);
  v1::RunSpec run = Run();
  run.set_epoch_count_max(1);
  TrainWith(run, 3);
  run.set_epoch_count_max(kEpochs);
  SetHyperparameter(&run, "device_cache_mib", "3");

  ASSERT_THAT(Train(run, /*is_resumed=*/true), IsOk());

  EXPECT_TRUE(ReadFile(dir_.Path("result_1.txt.checkpoint"), int64_t{1} << 30).value_or("") ==
              expected.checkpoint);
}

// What is looked at call by call is the run that is recorded and replayed.
TEST_F(DeviceInputTest, ATracedRunTrainsTheSameBits) {
  const Outcome expected = TrainWith(Run(), 0);
  ASSERT_THAT(RemoveTree(dir_.Path("result_1.txt.checkpoint")), IsOk());

  ASSERT_THAT(Train(Run(), false, {.trace_path = dir_.Path("trace")}), IsOk());

  EXPECT_TRUE(ReadFile(dir_.Path("result_1.txt.checkpoint"), int64_t{1} << 30).value_or("") ==
              expected.checkpoint);
  EXPECT_THAT(ReadFile(dir_.Path("trace")).value_or(""),
              AllOf(HasSubstr("\tconvolution forward fp32 x=2,4,32,32,32 w=1,4,3,3,3"),
                    HasSubstr("\tkernel Sgd count=")));
}

TEST_F(DeviceInputTest, ATraceOfAProcessorIsRefused) {
  v1::RunSpec run = Run();
  run.mutable_trainer()->set_backend("onednn");

  const absl::Status status = Train(run, false, {.trace_path = dir_.Path("trace")});

  EXPECT_THAT(std::string(status.message()), HasSubstr("backend onednn has no calls to trace"));
}

TEST_F(DeviceInputTest, ACacheInTheHostsMemoryIsRefusedBeforeTheRunStarts) {
  v1::RunSpec run = Run();
  run.mutable_trainer()->set_backend("onednn");
  SetHyperparameter(&run, "device_cache_mib", "64");

  const absl::Status status = Train(run);

  EXPECT_EQ(ExitCodeOf(status), ExitCode::kBadSpec);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("device_cache_mib"), HasSubstr("onednn"), HasSubstr("host's memory")));
  EXPECT_THAT(Log(), ::testing::Not(HasSubstr("run_start")));
}

TEST_F(DeviceInputTest, ACacheThatHoldsNotOneSampleIsRefused) {
  v1::RunSpec run = Run();
  testing::SetCubeEdge(&run, "64");  // 2 MiB
  SetHyperparameter(&run, "device_cache_mib", "1");

  const absl::Status status = Train(run);

  EXPECT_EQ(ExitCodeOf(status), ExitCode::kBadSpec);
  EXPECT_THAT(std::string(status.message()), HasSubstr("hold not one sample"));
}

}  // namespace
}  // namespace assay
