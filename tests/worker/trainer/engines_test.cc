#include "worker/trainer/engines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"
#include "tests/worker/comm/memory_world.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::IsOkAndHolds;
using testing::StatusIs;
using testing::TempDir;
using testing::WriteFile;

EngineChoices Two() {
  return {.device = "NVIDIA H200",
          .library = "cuDNN 9.19.0",
          .choices = {{"forward bf16 x=1,2,3,4,5", "engine=22 knobs=2:3,5:1", 12.5, 8},
                      {"weights \"tf32\"", "engine=0", 0, 0}}};
}

TEST(EnginesTest, WhatIsWrittenIsReadAgain) {
  const TempDir dir;
  const std::string path = dir.Path("engines.textproto");
  ASSERT_THAT(WriteEngines(path, Two()), IsOk());

  EXPECT_THAT(ReadEngines(path), IsOkAndHolds(Two()));
}

class BadEnginesTest : public ::testing::Test {
 protected:
  absl::Status Read(const std::string& text) {
    WriteFile(path_, text);
    return ReadEngines(path_).status();
  }
  static auto Refuses(const std::string& place) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(place));
  }

  TempDir dir_;
  const std::string path_ = dir_.Path("engines");
  const std::string head_ = "device: \"GPU\"\nlibrary: \"lib\"\n";
  const std::string choice_ = "choices { convolution: \"a\" engine: \"b\" }\n";
};

TEST_F(BadEnginesTest, WhatIsWrongIsNamedWithItsLine) {
  EXPECT_THAT(Read(head_ + choice_), IsOk());
  EXPECT_THAT(Read(head_ + "choices { convolutoin: \"a\" }"), Refuses(absl::StrCat(path_, ":3:")));
  EXPECT_THAT(Read(choice_), Refuses(absl::StrCat(path_, ":1:1: device and library")));
  EXPECT_THAT(Read(head_ + "\nchoices { engine: \"b\" }"),
              Refuses(absl::StrCat(path_, ":4:1: choices.convolution is missing")));
  EXPECT_THAT(Read(head_ + choice_ + "choices { convolution: \"b\" }"),
              Refuses(absl::StrCat(path_, ":4:1: choices.engine is missing")));
  EXPECT_THAT(Read(head_ + "choices { convolution: \"a\" engine: \"b\" microseconds: -1 }"),
              Refuses(":3:1: choices.microseconds"));
  EXPECT_THAT(Read(head_ + "choices { convolution: \"a\" engine: \"b\" candidates_timed: -1 }"),
              Refuses(":3:1: choices.candidates_timed"));
  EXPECT_THAT(Read(head_ + choice_ + choice_), Refuses(":4:1: there is another choice for \"a\""));
}

TEST_F(BadEnginesTest, AMissingFileIsNamed) {
  EXPECT_THAT(ReadEngines(dir_.Path("none")).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
}

// Where rank 0 chooses nothing, so does nobody.
TEST(ShareEnginesTest, AllRanksHaveThoseOfRankZero) {
  const RealClock clock;
  for (const EngineChoices& of_zero : {Two(), EngineChoices()}) {
    std::vector<std::unique_ptr<comm::Collective>> ranks = comm::OpenMemoryWorld(3, &clock);
    std::vector<absl::StatusOr<EngineChoices>> shared(3);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 3; ++i)
      threads.emplace_back([&, i] {
        const EngineChoices mine = i == 0 ? of_zero : EngineChoices{.device = "another"};
        shared[i] = ShareEngines(mine, ranks[i].get(), clock.Mono() + absl::Minutes(1));
      });
    for (std::thread& thread : threads)
      thread.join();

    for (const auto& each : shared)
      EXPECT_THAT(each, IsOkAndHolds(of_zero));
  }
}

}  // namespace
}  // namespace assay
