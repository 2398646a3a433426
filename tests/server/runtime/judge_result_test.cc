#include "server/runtime/judge_result.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/mllog.h"
#include "common/rules/arrivals.h"
#include "common/rules/check.h"
#include "common/sha256.h"
#include "common/telemetry/series.h"
#include "tests/support/clock_files.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::runtime {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;
using testing::StatusIs;

class JudgeResultTest : public ::testing::Test {
 protected:
  JudgeResultTest() {
    submission_.spec.round = "hpc-3.0.0";
    submission_.spec.benchmark = "cosmoflow";
    submission_.spec.division = "open";
    run_.number = 1;
    run_.nodes.resize(1);
  }

  // Uploads another file of the run.
  void UploadFile(const std::string& name, const std::string& bytes) {
    core::ArtifactRef file{.file_name = name};
    file.size_bytes = static_cast<int64_t>(bytes.size());
    file.sha256 = Sha256Hex(bytes);
    const auto writer = *artifacts_->Begin(file);
    ASSERT_THAT(writer->Append(bytes), IsOk());
    ASSERT_THAT(writer->Finish().status(), IsOk());
    run_.artifacts.push_back(file);
  }

  // A node that counts what its disk reads once a second from 0 to 5 s: nothing, of 100 MB.
  void UploadEvidenceOfNothingRead() {
    constexpr int64_t kSecondNs = 1'000'000'000;
    const telemetry::Header header{
        .boot_id = "b", .wall_us = 0, .node_ns = 0, .columns = {{"disk.vda.read", "bytes", true}}};
    const std::string path = dir_.Path("telemetry.bin");
    absl::StatusOr<telemetry::SeriesWriter> writer = telemetry::SeriesWriter::Create(path, header);
    ASSERT_THAT(writer, IsOk());
    const std::vector<int64_t> values = {7};
    for (int64_t second = 0; second <= 5; ++second)
      ASSERT_THAT(writer->Append(second * kSecondNs, values), IsOk());
    ASSERT_THAT(writer->Flush(), IsOk());
    UploadFile("telemetry_0.bin", *ReadFile(path));
    UploadFile("caches_0.json",
               R"({"coldness": "cold", "file_system": "ext4", "train_bytes": 100000000})");
  }

  // Uploads `piece`, so many times, as the run's result file.
  void Upload(const std::string& piece, int64_t count) {
    core::ArtifactRef log{.file_name = core::ResultFileName(run_)};
    log.size_bytes = static_cast<int64_t>(piece.size()) * count;
    Sha256 digest;
    for (int64_t i = 0; i < count; ++i)
      digest.Add(piece);
    log.sha256 = digest.HexDigest();
    const auto writer = *artifacts_->Begin(log);
    for (int64_t i = 0; i < count; ++i)
      ASSERT_THAT(writer->Append(piece), IsOk());
    ASSERT_THAT(writer->Finish().status(), IsOk());
    run_.artifacts = {log};
  }

  absl::StatusOr<core::RunFacts> Judge() {
    return JudgeResult(run_, submission_, dataset_, seen_, *artifacts_, *rules_);
  }

  testing::TempDir dir_;
  std::unique_ptr<store::ArtifactStore> artifacts_ =
      *store::ArtifactStore::Open(dir_.Path("artifacts"));
  std::unique_ptr<RuleBook> rules_ = *LoadRuleBook({});
  core::Submission submission_;
  std::optional<core::Dataset> dataset_;
  std::vector<core::Finding> seen_;
  core::Run run_;
};

std::string Line(const std::string& key, int64_t time_ms,
                 const std::string& metadata = R"({"epoch_num": 1})") {
  return absl::StrCat(":::MLLOG {\"namespace\": \"\", \"time_ms\": ", time_ms,
                      ", \"event_type\": \"POINT_IN_TIME\", \"key\": \"", key,
                      "\", \"value\": 1, \"metadata\": ", metadata, "}\n");
}

TEST_F(JudgeResultTest, PiecesAreJudgedAsTheWhole) {
  const std::string log =
      Line("run_start", 1000) + Line("eval_error", 2000) + Line("run_stop", 3000);
  Upload(log, 1);

  const absl::StatusOr<core::RunFacts> facts = Judge();
  ASSERT_THAT(facts, IsOk());
  const core::RunFacts whole = *rules_->CheckLog(log, submission_, run_);
  EXPECT_EQ(facts->run_start_ms, 1000);
  EXPECT_EQ(facts->findings, whole.findings);
  EXPECT_EQ(facts->is_compliant, whole.is_compliant);
}

// The most memory that this process ever had.
int64_t PeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} << 10;
}

// ASSAY_TEST_LOG_MIB=1000 shows the same of a log near the limit.
TEST_F(JudgeResultTest, WhatAProgramLogsElsewhereIsAWarning) {
  submission_.spec.workload = core::CommandWorkload{.command = {"/bin/train"}};
  Upload(Line("run_start", 1000), 1);
  run_.artifacts.push_back({.file_name = "log_1.txt", .size_bytes = 70});
  run_.artifacts.push_back({.file_name = "log_2.txt"});  // opened, and nothing written

  const auto facts = Judge();

  ASSERT_THAT(facts, IsOk());
  const auto is_it = [](const core::Finding& finding) { return finding.rule_id == "R-WRK-027"; };
  ASSERT_EQ(std::count_if(facts->findings.begin(), facts->findings.end(), is_it), 1);
  const core::Finding& finding =
      *std::find_if(facts->findings.begin(), facts->findings.end(), is_it);
  EXPECT_EQ(finding.severity, core::Severity::kWarning);
  EXPECT_EQ(finding.found, "log_1.txt, 70 bytes");
}

TEST_F(JudgeResultTest, MemoryDoesNotGrowWithTheLog) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer keeps freed memory";
#endif
  const char* const mib = std::getenv("ASSAY_TEST_LOG_MIB");
  const int64_t log_bytes = int64_t{mib == nullptr ? 128 : std::atoi(mib)} << 20;
  constexpr int64_t kGrowthMax = int64_t{8} << 20;
  std::string piece;
  while (piece.size() < (1 << 20))
    piece += Line("eval_error", static_cast<int64_t>(piece.size())) + "free text\n";
  Upload(piece, 2);
  ASSERT_THAT(Judge(), IsOk());
  Upload(piece, log_bytes / static_cast<int64_t>(piece.size()));

  const int64_t before = PeakBytes();
  ASSERT_THAT(Judge(), IsOk());

  std::cout << "log " << (log_bytes >> 20) << " MiB, peak " << (PeakBytes() >> 20)
            << " MiB, growth " << ((PeakBytes() - before) >> 10) << " KiB\n";
  EXPECT_LT(PeakBytes() - before, kGrowthMax);
}

TEST_F(JudgeResultTest, ALogBeyondTheLimitIsRefusedUnread) {
  Upload("x\n", 1);
  run_.artifacts[0].size_bytes = kMllogFileBytesMax + 1;

  EXPECT_THAT(Judge(), StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr("result_1.txt"), HasSubstr("are judged"))));
}

constexpr int64_t kStartMs = 1'700'000'000'000;

// Of a run of a minute.
std::string Arrivals(int64_t start_late_ms, int64_t stop_late_ms) {
  const auto arrival = [](const char* key, int64_t line, int64_t time_ms, int64_t late_ms) {
    return rules::Arrival{.record = {key, line, static_cast<double>(time_ms)},
                          .wall_us = (time_ms + late_ms) * 1000,
                          .mono_ns = (time_ms + late_ms) * 1'000'000};
  };
  return rules::ArrivalsText({arrival("run_start", 1, kStartMs, start_late_ms),
                              arrival("run_stop", 2, kStartMs + 60'000, stop_late_ms)});
}

// Of a native run as of any other (requirement W6).
TEST_F(JudgeResultTest, StampsAreComparedWithWhenTheRecordsCame) {
  const std::string log = Line("run_start", kStartMs) + Line("run_stop", kStartMs + 60'000);
  const auto is_of_stamps = Contains(Field(&core::Finding::section, HasSubstr("when it came")));

  Upload(log, 1);
  UploadFile("arrivals.jsonl", Arrivals(1, 30));
  EXPECT_THAT(Judge()->findings, Not(is_of_stamps));

  Upload(log, 1);
  UploadFile("arrivals.jsonl", Arrivals(1, -10'000));
  const absl::StatusOr<core::RunFacts> forged = Judge();
  ASSERT_THAT(forged, IsOk());
  EXPECT_EQ(forged->is_compliant, false);
  EXPECT_THAT(forged->findings,
              Contains(AllOf(Field(&core::Finding::rule_id, "R-TIM-031"),
                             Field(&core::Finding::severity, core::Severity::kError),
                             Field(&core::Finding::found,
                                   "run_stop stamped 10.000 s after it arrived on the node"))));

  Upload(Line("run_start", kStartMs) + Line("run_stop", kStartMs + 50'000), 1);
  UploadFile("arrivals.jsonl", Arrivals(1, 30));
  EXPECT_THAT(Judge()->findings, Contains(Field(&core::Finding::rule_id, "R-TIM-034")))
      << "the log was changed after its records had come";
}

TEST_F(JudgeResultTest, NeitherAMissingNorAChangedLogIsJudged) {
  EXPECT_THAT(Judge(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("result_1.txt")));

  Upload("x\n", 1);
  const std::string& digest = run_.artifacts[0].sha256;
  ASSERT_THAT(WriteFileAtomic(
                  dir_.Path(absl::StrCat("artifacts/", digest.substr(0, 2), "/", digest)), "y\n"),
              IsOk());
  EXPECT_THAT(Judge(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("have changed")));
}

// The adversary of the witness's specification, section 10: a copy in memory is read.
TEST_F(JudgeResultTest, AFirstPassThatCameFromNowhereIsAWarning) {
  submission_.spec.node_count = 1;
  Upload(Line("run_start", 1000) + Line("epoch_start", 1100) + Line("epoch_stop", 2900) +
             Line("run_stop", 3000),
         1);
  const std::optional<bool> is_compliant = Judge()->is_compliant;
  UploadEvidenceOfNothingRead();

  const absl::StatusOr<core::RunFacts> facts = Judge();
  ASSERT_THAT(facts, IsOk());
  EXPECT_THAT(facts->findings,
              Contains(AllOf(Field(&core::Finding::rule_id, "R-IOB-001"),
                             Field(&core::Finding::severity, core::Severity::kWarning),
                             Field(&core::Finding::found, HasSubstr("0.0 MB of 100.0 MB")))));
  EXPECT_EQ(facts->is_compliant, is_compliant);
}

TEST_F(JudgeResultTest, ARoundMayDemandAFirstPassFromStorage) {
  const std::string round = dir_.Path("round.toml");
  ASSERT_THAT(WriteFileAtomic(round,
                              "[round]\nname = \"mini\"\nbase = \"hpc-3.0.0\"\nlabel = \"x\"\n"
                              "first_pass_from_storage = true\n[benchmark]\n"
                              "name = \"cosmoflow\"\nruns = 1\ntarget = 0.5\n"),
              IsOk());
  rules_ = *LoadRuleBook({round});
  submission_.spec.round = "mini";
  submission_.spec.node_count = 1;
  Upload(Line("run_start", 1000) + Line("epoch_start", 1100) + Line("epoch_stop", 2900) +
             Line("run_stop", 3000),
         1);
  UploadEvidenceOfNothingRead();

  const absl::StatusOr<core::RunFacts> facts = Judge();
  ASSERT_THAT(facts, IsOk());
  EXPECT_THAT(facts->findings,
              Contains(AllOf(Field(&core::Finding::rule_id, "R-IOB-001"),
                             Field(&core::Finding::severity, core::Severity::kError))));
  EXPECT_EQ(facts->is_compliant, false);
}

// Adversary: a cache of the nodes makes staging short where staging counts.
TEST_F(JudgeResultTest, ACacheIsNoStartWhereStagingIsTimed) {
  submission_.spec.node_count = 1;
  Upload(Line("run_start", 1000) + Line("staging_start", 1100, R"({"cache_hit_bytes": 70})") +
             Line("staging_stop", 1200) + Line("run_stop", 3000),
         1);
  const auto is_told = Contains(Field(&core::Finding::rule_id, "R-IOB-002"));
  EXPECT_THAT(Judge()->findings, Not(is_told)) << "its staging is not timed";

  submission_.rules.is_staging_timed = true;
  const absl::StatusOr<core::RunFacts> facts = Judge();
  ASSERT_THAT(facts, IsOk());
  EXPECT_THAT(facts->findings,
              Contains(AllOf(Field(&core::Finding::rule_id, "R-IOB-002"),
                             Field(&core::Finding::severity, core::Severity::kError),
                             Field(&core::Finding::found, "70 bytes"))));
  EXPECT_EQ(facts->is_compliant, false);
}

TEST_F(JudgeResultTest, WhatNodesSawIsEvidenceUnlessTheRoundDemandsColdData) {
  const std::string round = dir_.Path("round.toml");
  ASSERT_THAT(WriteFileAtomic(round,
                              "[round]\nname = \"mini\"\nbase = \"hpc-3.0.0\"\nlabel = \"x\"\n"
                              "data_cold_at_start = true\n[benchmark]\n"
                              "name = \"cosmoflow\"\nruns = 1\ntarget = 0.5\n"),
              IsOk());
  rules_ = *LoadRuleBook({round});
  submission_.spec.node_count = 1;
  Upload(Line("run_start", 1000) + Line("run_stop", 3000), 1);
  seen_ = {rules::NodeFinding("R-TIM-004", "node 0: 9 pages"),
           rules::NodeFinding("R-PAU-002", "node 0: 2 s")};
  // A worker has no say in what is an error; and what is judged is judged anew.
  seen_[1].severity = core::Severity::kError;
  seen_.push_back(rules::DeclaredCache(7));
  const auto severity_of = [&](absl::string_view rule) -> std::optional<core::Severity> {
    const absl::StatusOr<core::RunFacts> facts = Judge();
    for (const core::Finding& finding : facts->findings)
      if (finding.rule_id == rule) return finding.severity;
    return std::nullopt;
  };
  EXPECT_EQ(severity_of("R-TIM-004"), core::Severity::kWarning);
  EXPECT_EQ(severity_of("R-PAU-002"), core::Severity::kWarning);
  EXPECT_EQ(severity_of("R-IOB-002"), std::nullopt);

  submission_.spec.round = "mini";
  EXPECT_EQ(severity_of("R-TIM-004"), core::Severity::kError);
  EXPECT_EQ(severity_of("R-PAU-002"), core::Severity::kWarning);
  EXPECT_EQ(Judge()->is_compliant, false);
}

// Adversary: nodes have copies of their own from before the clock, where copying is on it.
TEST_F(JudgeResultTest, ADatasetOnSeveralMachinesOwnStorageIsToldWhereStagingIsTimed) {
  submission_.spec.node_count = 3;
  submission_.rules.is_staging_timed = true;
  const std::string log = Line("run_start", 1000) + Line("run_stop", 3000);
  const auto found_with = [&](const std::vector<std::string>& caches) -> std::string {
    Upload(log, 1);
    for (size_t i = 0; i < caches.size(); ++i)
      UploadFile(absl::StrCat("caches_", i, ".json"), caches[i]);
    const absl::StatusOr<core::RunFacts> facts = Judge();
    for (const core::Finding& finding : facts->findings)
      if (finding.rule_id == "R-IOB-003") return finding.found;
    return "";
  };
  const std::string a = R"({"file_system": "ext4", "is_local": true, "boot_id": "a"})";
  const std::string b = R"({"file_system": "xfs", "is_local": true, "boot_id": "b"})";
  const std::string remote = R"({"file_system": "nfs", "is_local": false, "boot_id": "c"})";
  const std::string former = R"({"file_system": "ext4"})";
  EXPECT_EQ(found_with({a, remote, b}), "local storage on 2 machines (node 0: ext4, node 2: xfs)");
  EXPECT_EQ(found_with({a, a, a}), "") << "agents of one machine";
  EXPECT_EQ(found_with({a, remote, remote}), "") << "node 0 serves it";
  EXPECT_EQ(found_with({former, former, "no JSON"}), "") << "not known";
  submission_.rules.is_staging_timed = false;
  EXPECT_EQ(found_with({a, b, b}), "") << "any durable storage";
}

// Node 1's wall clock is set back by 30 s after the run began on it: by the offset of that time its
// touch would be far behind run_start, or far before.
TEST_F(JudgeResultTest, TouchesOfOtherNodesAreJudgedByTheirClocksAtThatTime) {
  constexpr int64_t kSecond = 1'000'000'000;
  constexpr int64_t kBeginMs = 1'000'000;
  const auto early = Contains(Field(&core::Finding::rule_id, "R-TIM-001"));
  const auto touch_at = [&](int64_t after_ms) {
    Upload(Line("run_start", kBeginMs) + Line("run_stop", kBeginMs + 9000), 1);
    run_.nodes.resize(2);
    for (core::RunNode& node : run_.nodes)
      node.clock_offset_uncertainty_us = 300;
    run_.nodes[1].first_touch_us = (kBeginMs + after_ms - 30'000) * 1000;
    UploadFile("touch_1.json",
               absl::StrCat("{\"wall_us\": ", *run_.nodes[1].first_touch_us,
                            ", \"mono_ns\": ", 50 * kSecond + after_ms * 1'000'000, "}"));
    UploadFile("arrivals.jsonl", testing::StartArrivals(kBeginMs, 14 * kSecond));
    UploadFile("offsets.jsonl", testing::Offsets(14 * kSecond));
  };

  touch_at(20);
  EXPECT_THAT(Judge()->findings, early) << "by what was known at the start, as before";
  UploadFile("offsets_1.jsonl", testing::Offsets(50 * kSecond));
  EXPECT_THAT(Judge()->findings, Not(early));
  EXPECT_EQ(Judge()->touch_after_start_us, 20'000);
  EXPECT_EQ(Judge()->touch_error_us, std::nullopt) << "the agent did not say how late it looked";

  touch_at(-20);
  UploadFile("offsets_1.jsonl", testing::Offsets(50 * kSecond));
  EXPECT_THAT(Judge()->findings, early);

  // 20 ms before the start, but nobody knows better than 60 ms.
  touch_at(-20);
  UploadFile("offsets_1.jsonl", testing::Offsets(50 * kSecond, 1, 60'000));
  EXPECT_THAT(Judge()->findings, Not(early));

  // A record of another touch, and a file that is cut.
  touch_at(20);
  UploadFile("offsets_1.jsonl", testing::Offsets(50 * kSecond).substr(0, 40));
  EXPECT_THAT(Judge()->findings, early);
}

TEST_F(JudgeResultTest, AFirstTouchHasABound) {
  constexpr int64_t kSecond = 1'000'000'000;
  constexpr int64_t kBeginMs = 1'000'000;
  Upload(Line("run_start", kBeginMs) + Line("run_stop", kBeginMs + 9000), 1);
  submission_.spec.node_count = 2;
  run_.nodes.resize(2);
  run_.nodes[0].first_touch_us = kBeginMs * 1000 + 50'000;
  run_.nodes[1].first_touch_us = kBeginMs * 1000 + 777;  // by its clock; its files say another time
  UploadFile("arrivals.jsonl", testing::StartArrivals(kBeginMs, 14 * kSecond));
  UploadFile("offsets.jsonl", testing::Offsets(14 * kSecond));
  UploadFile("offsets_1.jsonl", testing::Offsets(50 * kSecond));
  UploadFile("touch_0.json", R"({"error_us": 90, "assurance": "observed"})");
  const auto of_node_1 = [&](const std::string& error) {
    std::erase_if(run_.artifacts,
                  [](const core::ArtifactRef& file) { return file.file_name == "touch_1.json"; });
    UploadFile("touch_1.json",
               absl::StrCat("{\"wall_us\": ", *run_.nodes[1].first_touch_us,
                            ", \"mono_ns\": ", 50 * kSecond + 20'000'000, error, "}"));
    return *Judge();
  };

  core::RunFacts facts = of_node_1(", \"error_us\": 5000");
  EXPECT_EQ(facts.touch_after_start_us, 20'000);
  // The later look of the two, both nodes' offsets with a rest, and what the log cuts off.
  EXPECT_EQ(facts.touch_error_us, 5000 + 801 + 1000);

  for (const char* unknown : {"", ", \"error_us\": -1", ", \"error_us\": 9e15"}) {
    facts = of_node_1(unknown);
    EXPECT_EQ(facts.touch_after_start_us, 20'000) << unknown;
    EXPECT_EQ(facts.touch_error_us, std::nullopt) << unknown;
  }
}

TEST_F(JudgeResultTest, ARoundMayDemandHowWellTheFirstTouchWasSeen) {
  const auto demand = [this](const std::string& assurance) {
    const std::string round = dir_.Path("round.toml");
    ASSERT_THAT(
        WriteFileAtomic(round, "[round]\nname = \"mini\"\nbase = \"hpc-3.0.0\"\nlabel = \"x\"\n" +
                                   assurance +
                                   "[benchmark]\nname = \"cosmoflow\"\nruns = 1\ntarget = 0.5\n"),
        IsOk());
    rules_ = *LoadRuleBook({round});
  };
  const auto is_weak = Contains(Field(&core::Finding::rule_id, "R-TIM-008"));
  submission_.spec.round = "mini";
  submission_.spec.node_count = 2;
  Upload(Line("run_start", 1000) + Line("run_stop", 3000), 1);
  UploadFile("touch_0.json", R"({"assurance": "proven", "holes": []})");
  UploadFile("touch_1.json",
             R"({"assurance": "observed", "holes": [{"code": "W-DEVICE", "why": "x"},
                                                    {"code": "\u001b[31m", "why": "x"}]})");

  demand("");
  EXPECT_THAT(Judge()->findings, Not(is_weak));
  EXPECT_EQ(Judge()->touch_assurance, "observed") << "the weakest node is the run's";
  EXPECT_THAT(Judge()->touch_hole_codes, ElementsAre("W-DEVICE"));
  demand("first_touch_assurance = \"observed\"\n");
  EXPECT_THAT(Judge()->findings, Not(is_weak));
  demand("first_touch_assurance = \"proven\"\n");
  const absl::StatusOr<core::RunFacts> facts = Judge();
  ASSERT_THAT(facts, IsOk());
  EXPECT_EQ(facts->is_compliant, false);
  EXPECT_THAT(facts->findings,
              Contains(AllOf(Field(&core::Finding::rule_id, "R-TIM-008"),
                             Field(&core::Finding::severity, core::Severity::kError),
                             Field(&core::Finding::found,
                                   "node 1: observed with the holes W-DEVICE; the round demands "
                                   "proven"))));

  submission_.spec.node_count = 3;
  demand("first_touch_assurance = \"observed\"\n");
  EXPECT_THAT(
      Judge()->findings,
      Contains(Field(&core::Finding::found, "node 2: self-reported; the round demands observed")));
}

}  // namespace
}  // namespace assay::runtime
