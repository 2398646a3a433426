// `assay run show --touch`: how the nodes saw the first touch, for people and programs.

#include "cli/run/run_touch.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "common/sha256.h"
#include "tests/cli/fake_coordinator.h"
#include "tests/cli/invocation.h"
#include "tests/support/clock_files.h"

namespace assay {
namespace {

using cli::ExitStatus;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr char kTouch[] =
    R"({"path": "/d/train/a", "mechanism": "fanotify", "watched": "file system", "access": "open",)"
    R"( "strength": "attributed", "assurance": "observed", "rank": 3, "pid": 4711,)"
    R"( "process": "python3", "wall_us": 1700000000123456, "mono_ns": 1,)"
    R"( "holes": [{"code": "W-NO-GATE", "why": "nothing held readers back"},)"
    R"( {"code": "W-TRAINER-ROOT", "why": "rank 3 has CAP_SYS_ADMIN"}]})";

class RunTouchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    coordinator_.Start();
    run_.env.variables["ASSAY_SOCKET"] = coordinator_.socket_path();
  }
  // To the files of every run.
  void Add(const std::string& name, const std::string& text) {
    coordinator_.artifacts[Sha256Hex(text)] = text;
    for (v1::Run& run : coordinator_.runs) {
      v1::ArtifactRef* const file = run.add_artifacts();
      file->set_file_name(name);
      file->set_sha256(Sha256Hex(text));
      file->set_size_bytes(static_cast<int64_t>(text.size()));
    }
  }
  nlohmann::json Json() {
    EXPECT_EQ(run_.Run("run show r-1 --touch --json=touch,touches,touch_assurance,touch_holes"),
              ExitStatus::kDone)
        << run_.err;
    return nlohmann::json::parse(run_.out);
  }

  testing::FakeCoordinator coordinator_;
  testing::Invocation run_;
};

TEST_F(RunTouchTest, OneSentenceSaysWhoHowAndWhatWasNotSeen) {
  Add("touch_0.json", kTouch);
  Add("observed_1.json",
      R"({"path": "/d/train/b", "mechanism": "inotify", "strength": "observed", "pid": 0,)"
      R"( "wall_us": 1700000000000000})");  // an agent of before
  Add("touch_x.json", "{}");

  EXPECT_EQ(run_.Run("run show r-1 --touch -o table"), ExitStatus::kDone) << run_.err;

  EXPECT_THAT(run_.out, AllOf(HasSubstr(":13:20.123456 by rank 3 (python3, pid 4711), fanotify of "
                                        "the file system: observed; holes: W-NO-GATE "
                                        "W-TRAINER-ROOT"),
                              ContainsRegex("1 +observed +unknown +somebody +inotify"),
                              ContainsRegex("0 +W-TRAINER-ROOT +rank 3 has CAP_SYS_ADMIN")));

  const nlohmann::json json = Json();
  ASSERT_EQ(json["touches"].size(), 2U);
  EXPECT_EQ(json["touches"][0]["strength"], "attributed") << "who, as before";
  EXPECT_THAT(json["touches"][1]["sentence"].get<std::string>(),
              HasSubstr("by somebody, inotify: observed; holes: not recorded"));
  EXPECT_EQ(json["touch_assurance"], "observed");
  EXPECT_EQ(json["touch_holes"][0]["code"], "W-NO-GATE");
}

TEST_F(RunTouchTest, WhatAGateHasHeldCanBeProven) {
  Add("touch_0.json", R"({"path": "/d/train/a", "mechanism": "fanotify", "watched": "file system",)"
                      R"( "strength": "attributed", "assurance": "proven", "rank": 0, "pid": 7,)"
                      R"( "process": "train", "wall_us": 1700000000000000, "holes": [],)"
                      R"( "gate": {"held_us": 212, "held_by": "pre-access events"}})");
  Add("touch_1.json", kTouch);

  const nlohmann::json json = Json();
  EXPECT_THAT(json["touches"][0]["sentence"].get<std::string>(),
              HasSubstr("fanotify of the file system, held for 212 us by pre-access events: "
                        "proven; holes: none"));
  EXPECT_EQ(json["touches"][0]["gate"]["held_us"], 212);
  EXPECT_EQ(json["touch_assurance"], "observed") << "of the other node";
}

TEST_F(RunTouchTest, ARunIsAsGoodAsItsWeakestNode) {
  Add("touch_0.json", kTouch);
  const nlohmann::json json = Json();
  EXPECT_EQ(json["touches"][1]["assurance"], "self-reported") << json;
  EXPECT_EQ(json["touch_assurance"], "self-reported");
  EXPECT_EQ(json["touch"], "node 1: no first touch was witnessed: self-reported");
}

// Of node 0, which stamps the log; of one that knows how its clock stood to that; and of others.
TEST_F(RunTouchTest, EachStampHasABound) {
  constexpr int64_t kSecond = 1'000'000'000;
  constexpr int64_t kStartMs = 1'700'000'000'000;
  for (v1::Run& run : coordinator_.runs) {
    run.set_run_start_ms(kStartMs);
    run.clear_workers();
    for (const char* worker : {"workers/a", "workers/b", "workers/c"})
      run.add_workers(worker);
  }
  const auto touch = [](int64_t wall_us, int64_t mono_ns) {
    return absl::StrCat(R"({"path": "/d/a", "mechanism": "fanotify", "strength": "attributed",)",
                        R"( "assurance": "observed", "wall_us": )", wall_us,
                        ", \"error_us\": 99, \"mono_ns\": ", mono_ns, "}");
  };
  Add("touch_0.json", touch(kStartMs * 1000 + 40, 1));
  // Two seconds after run_start, by a wall clock that is 30 s wrong.
  Add("touch_1.json", touch((kStartMs - 28'000) * 1000, 52 * kSecond));
  Add("touch_2.json", touch(kStartMs * 1000, 52 * kSecond));
  Add("arrivals.jsonl", testing::StartArrivals(kStartMs, 14 * kSecond));
  Add("offsets.jsonl", testing::Offsets(14 * kSecond));
  Add("offsets_1.jsonl", testing::Offsets(50 * kSecond));
  Add("offsets_2.jsonl", "{\"boot_id\": \"bo");

  const nlohmann::json touches = Json()["touches"];
  ASSERT_EQ(touches.size(), 3U);
  EXPECT_EQ(touches[0]["log_clock_error_us"], 0);
  EXPECT_EQ(touches[0]["log_clock_us"], kStartMs * 1000 + 40);
  EXPECT_EQ(touches[1]["log_clock_us"], (kStartMs + 2000) * 1000);
  EXPECT_EQ(touches[1]["log_clock_error_us"], 801) << "both offsets, and a rest";
  EXPECT_THAT(touches[1]["sentence"].get<std::string>(),
              HasSubstr(":13:22.000000 +- 0.9 ms by the run"))
      << "the clocks, and how late the node may have looked";
  EXPECT_THAT(touches[0]["sentence"].get<std::string>(),
              HasSubstr(":13:20.000040 +- 0.099 ms by the run"));
  EXPECT_TRUE(touches[2]["log_clock_error_us"].is_null());
  EXPECT_THAT(touches[2]["sentence"].get<std::string>(),
              HasSubstr(":13:20.000000 by a clock off by an unknown time by the run"));

  EXPECT_EQ(run_.Run("run show r-1 --touch -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.out, AllOf(HasSubstr("OFF BY"), HasSubstr("0.9 ms"), HasSubstr("unknown")));
}

TEST_F(RunTouchTest, ARunWithoutRecordsSaysSo) {
  EXPECT_EQ(run_.Run("run show r-1 --touch -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.err, HasSubstr("no record of a first touch"));
}

}  // namespace
}  // namespace assay
