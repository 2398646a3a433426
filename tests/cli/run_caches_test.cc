// `assay run show --caches`: what the nodes wrote down of their caches, for people and programs.

#include "cli/run/run_caches.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "tests/cli/fake_coordinator.h"
#include "tests/cli/invocation.h"

namespace assay {
namespace {

using cli::ExitStatus;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kCold[] =
    R"({"coldness": "cold", "reason": "", "method": "drop_caches", "resident_pages": 0,)"
    R"( "checked_files": 900, "file_count": 900, "bound_bytes": 46000000, "file_system": "nfs",)"
    R"( "not_known": ["nfs: the server's cache is not reset and not known"]})";

class RunCachesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    coordinator_.Start();
    run_.env.variables["ASSAY_SOCKET"] = coordinator_.socket_path();
  }

  testing::FakeCoordinator coordinator_;
  testing::Invocation run_;
};

TEST_F(RunCachesTest, EachNodeSaysWhatItKnowsAndWhatNot) {
  coordinator_.AddArtifact("caches_1.json",
                           R"({"coldness": "warm", "reason": "9 pages", "not_known": []})");
  coordinator_.AddArtifact("caches_0.json", kCold);
  coordinator_.AddArtifact("caches_x.json", "{}");
  coordinator_.AddArtifact("caches_2.json", "not JSON");

  EXPECT_EQ(run_.Run("run show r-1 --caches -o table"), ExitStatus::kDone) << run_.err;

  EXPECT_THAT(run_.out, AllOf(ContainsRegex("0 +cold +drop_caches +0 +900 +900 +46 MB +nfs"),
                              ContainsRegex("1 +warm\n"), ContainsRegex("0 +nfs: the server"),
                              ContainsRegex("1 +9 pages\n")));

  coordinator_.AddArtifact("caches_3.json",
                           R"({"coldness": "cold", "reason": "", "not_known": [], "node_cache":)"
                           R"( {"files": 9, "bytes": 46000000, "checked_files": 4, "seed": "1",)"
                           R"( "damaged": ["train/7"]}})");
  EXPECT_EQ(run_.Run("run show r-1 --caches -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.out,
              AllOf(HasSubstr("9 files (46 MB) came from the node's cache: a sample of 4 verified"),
                    HasSubstr("damaged in the cache: train/7")));

  EXPECT_EQ(run_.Run("run show r-1 --caches --json=caches,cache_notes"), ExitStatus::kDone)
      << run_.err;
  const nlohmann::json json = nlohmann::json::parse(run_.out);
  const nlohmann::json& caches = json["caches"];
  ASSERT_EQ(caches.size(), 3U);
  EXPECT_EQ(caches[0]["not_known"][0], "nfs: the server's cache is not reset and not known");
  EXPECT_EQ(json["cache_notes"][1]["note"], "9 pages");
  EXPECT_EQ(caches[1]["node"], 1);
}

TEST_F(RunCachesTest, ARunOfBeforeSaysSo) {
  EXPECT_EQ(run_.Run("run show r-1 --caches -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.err, HasSubstr("no record of its caches"));
  EXPECT_THAT(run_.out, Not(HasSubstr("Caches when")));
}

}  // namespace
}  // namespace assay
