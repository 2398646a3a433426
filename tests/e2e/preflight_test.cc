// Nodes are checked before the runs of a set: one that is slow is excluded, and the set starts on
// others, once these have measured the fabric between them.

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "tests/e2e/site.h"
#include "tests/support/await.h"
#include "tests/support/cpu_quota.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Rates of agents that share two processors with whatever else runs vary by a factor of some; a
// node with a fiftieth of one does not reach a seventh.
constexpr double kSlowCores = 0.02;
constexpr char kPreflight[] = R"(launcher { kind: "attach" }
preflight {
  percent_of_median: 15
  checks { check: "memory" policy: OFF }
  checks { check: "quiet" policy: OFF }
  checks { check: "dataset-disk" policy: OFF }
  checks { check: "stage-disk" policy: OFF }
})";

std::string WriteEntry(const Site& site, int nodes) {
  const std::string path = site.Path(absl::StrCat("entry", nodes, ".toml"));
  WriteFile(path, absl::StrReplaceAll(
                      SubmissionText{.epochs_max = 40, .global_batch_size = 2 * nodes}.ToString(),
                      {{"nodes = 2", absl::StrCat("nodes = ", nodes)}}));
  return path;
}

Json CheckOf(const Json& node, const std::string& name) {
  for (const Json& check : node["preflight"]["checks"])
    if (check["check"] == name) return check;
  return {};
}

// The run was on n1 and n2, and its record has what they have passed for its entry.
void ExpectRecorded(const Site& site, const Json& entry, const std::string& run) {
  EXPECT_THAT(site.AssayJson({"run", "show", run})["nodes"], ElementsAre("n1", "n2"));
  for (const char* node : {"n1", "n2"}) {
    const Outcome file = site.Assay(
        {"run", "files", run, absl::StrCat("preflight_", node[1] == '1' ? 0 : 1, ".json")});
    const Json record = Json::parse(file.out, nullptr, false);
    ASSERT_TRUE(record.is_object()) << file.Text();
    EXPECT_EQ(record["node"], node);
    EXPECT_EQ(record["state"], "PASSED");
    EXPECT_THAT(record["submission"].get<std::string>(), HasSubstr(entry["id"].get<std::string>()));
    bool has_compute = false;
    bool has_fabric = false;
    for (const Json& check : record["checks"]) {
      has_fabric = has_fabric || (check["check"] == "fabric" && check["value"] > 0);
      has_compute = has_compute || (check["check"] == "compute" && check["value"] > 0.5 &&
                                    check["unit"] == "GFLOP/s" && check["policy"] == "GATE");
    }
    EXPECT_TRUE(has_compute && has_fabric) << record;
  }
}

TEST(PreflightTest, ASlowNodeIsExcludedAndTheSetStartsOnOthers) {
  const std::optional<CpuQuota> quota = CpuQuota::Make(kSlowCores);
  if (!quota.has_value()) GTEST_SKIP() << "needs root and control groups";
  Site site;
  const Coordinator coordinator(&site, kPreflight);
  ProvideBeacons(site, "small", 96, 24);
  std::deque<Worker> workers;
  for (int i = 0; i < 3; ++i)
    workers.emplace_back(site, absl::StrCat("n", i), coordinator.address());

  const auto has_called = [&site](const std::string& name) {
    return site.Assay({"node", "show", name}).exit_code == 0;
  };
  for (const char* name : {"n0", "n1", "n2"})
    ASSERT_TRUE(Await([&] { return has_called(name); })) << name;

  // What the nodes can do: the numbers of all three.
  const Outcome first = site.Assay({"submit", WriteEntry(site, 3)});
  ASSERT_EQ(first.exit_code, 0) << first.Text();
  const auto has_passed = [&site](const std::string& name) {
    const Json node = site.AssayJson({"node", "show", name});
    return node.contains("preflight") && node["preflight"]["state"] == "passed";
  };
  for (const char* name : {"n0", "n1", "n2"})
    ASSERT_TRUE(Await([&] { return has_passed(name); })) << site.Assay({"node", "show", name}).out;
  const Json good = CheckOf(site.AssayJson({"node", "show", "n1"}), "compute");
  EXPECT_EQ(good["unit"], "GFLOP/s") << good;
  EXPECT_EQ(good["policy"], "gate");
  EXPECT_GT(good["value"].get<double>(), 0.5);
  EXPECT_THAT(site.Assay({"node", "facts", "n1"}).out,
              ContainsRegex("measured.compute\t[0-9.e+]+ GFLOP/s"));
  const Outcome cancelled = site.Assay({"cancel", "@last"});
  ASSERT_EQ(cancelled.exit_code, 0)
      << cancelled.Text() << site.Assay({"entry", "show", "@last"}).out;

  const auto is_idle = [&site](const std::string& name) {
    return !site.AssayJson({"node", "show", name}).contains("run");
  };
  for (const char* name : {"n0", "n1", "n2"})
    ASSERT_TRUE(Await([&] { return is_idle(name); })) << name;

  ASSERT_TRUE(quota->Add(workers[0].process().pid));
  const Outcome second = site.Assay({"submit", WriteEntry(site, 2)});
  ASSERT_EQ(second.exit_code, 0) << second.Text();
  const auto is_drained = [&site] {
    return site.AssayJson({"node", "show", "n0"})["state"] == "draining";
  };
  ASSERT_TRUE(Await(is_drained)) << site.Assay({"node", "show", "n0"}).out;
  const Json slow = site.AssayJson({"node", "show", "n0"});
  EXPECT_EQ(slow["preflight"]["state"], "failed") << slow;
  // It may be so slow that it does not even answer.
  EXPECT_THAT(slow["state_reason"].get<std::string>(),
              AnyOf(HasSubstr("GFLOP/s, below 15 % of the median"), HasSubstr("no answer within"),
                    HasSubstr("the matrix product has not ended within")));
  const Outcome shown = site.Assay({"node", "show", "n0"});
  EXPECT_THAT(shown.out, HasSubstr("pre-flight: "));
  EXPECT_THAT(shown.out, HasSubstr("compute"));

  const Outcome waited = site.Assay({"wait", "@last", "--timeout", "10m"});
  ASSERT_EQ(waited.exit_code, 0) << waited.Text();
  const Json entry = site.AssayJson({"entry", "show", "@last"});
  EXPECT_EQ(entry["state"], "valid") << entry;
  EXPECT_THAT(entry["checked_nodes"], ElementsAre("n1", "n2"));
  EXPECT_THAT(entry["preflight_error"].get<std::string>(), HasSubstr("pre-flight of node n0: "));
  for (const Json& run : entry["run_details"])
    ExpectRecorded(site, entry, run["id"]);
  // Then they have measured how fast they reach each other.
  const Json fabric = CheckOf(site.AssayJson({"node", "show", "n1"}), "fabric");
  EXPECT_EQ(fabric["unit"], "GB/s") << site.Assay({"node", "show", "n1"}).out;
  EXPECT_GT(fabric["value"].get<double>(), 0);
  EXPECT_THAT(fabric["detail"].get<std::string>(), HasSubstr("all-reduce of all 2: 8 bytes in "));
  EXPECT_THAT(fabric["detail"].get<std::string>(), HasSubstr("; with n2: "));
  ASSERT_EQ(site.Assay({"entry", "export", "@last", "package"}).exit_code, 0);
  const std::string packaged =
      site.Path("package/Example/benchmarks/cosmoflow/this-host/preflight/result_1");
  for (const char* file : {"preflight_0.json", "preflight_1.json"})
    EXPECT_TRUE(FileExists(JoinPath(packaged, file))) << packaged;
  const Outcome audit = site.Assay({"admin", "audit"});
  EXPECT_THAT(audit.out, HasSubstr("PreflightFinished")) << audit.Text();
}

}  // namespace
}  // namespace assay::testing
