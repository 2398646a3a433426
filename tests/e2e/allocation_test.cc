// The lease of a coordinator's own nodes: held over a crash, given back, asked for again, and tried
// again while it fails.

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "tests/e2e/site.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kAsksMax = 2000;  // each takes the time of a process

Json Shown(const Site& site, const std::string& allocation) {
  const Outcome shown = site.Assay({"allocation", "show", allocation, "--json"});
  return Json::parse(shown.out, nullptr, /*allow_exceptions=*/false);
}

bool AwaitState(const Site& site, const std::string& allocation, const std::string& state) {
  for (int i = 0; i < kAsksMax; ++i) {
    const Json json = Shown(site, allocation);
    if (json.is_object() && json.value("state", "") == state) return true;
  }
  return false;
}

TEST(AllocationTest, NodesAreHeldGivenBackAndTriedAgain) {
  Site site;
  Coordinator coordinator(&site, /*worker_count=*/1);
  ASSERT_TRUE(AwaitState(site, "a-1", "active"));
  EXPECT_EQ(Shown(site, "a-1")["nodes"], Json({"local-0"}));
  EXPECT_EQ(site.AssayJson({"node", "show", "local-0"})["allocation"], "a-1");

  const ProcessId agent = coordinator.Agent("local-0");
  coordinator.Kill();
  coordinator.Start();
  ASSERT_TRUE(coordinator.AwaitLogLine("agent found running worker=local-0"));
  EXPECT_EQ(coordinator.Agent("local-0"), agent);
  EXPECT_EQ(Shown(site, "a-1")["state"], "active");

  const Outcome released = site.Assay({"allocation", "release", "a-1", "--reason", "moving"});
  ASSERT_EQ(released.exit_code, 0) << released.Text();
  ASSERT_TRUE(AwaitState(site, "a-1", "ended"));
  EXPECT_EQ(Shown(site, "a-1")["state_reason"], "moving");
  EXPECT_FALSE(IsRunning(agent));
  EXPECT_TRUE(site.AssayJson({"node", "list"})["items"].empty()) << "out of memory";
  EXPECT_EQ(site.AssayJson({"node", "show", "local-0"})["state"], "gone") << "the store knows it";

  const std::string program = site.Program("assay-worker");
  std::filesystem::rename(program, program + ".away");
  ASSERT_EQ(site.Assay({"allocation", "request", "--nodes", "1"}).exit_code, 0);
  ASSERT_TRUE(coordinator.AwaitLogLine("no nodes allocation=a-2"));
  ASSERT_TRUE(coordinator.AwaitLogLine("no nodes allocation=a-2")) << "it is tried again";
  EXPECT_THAT(Shown(site, "a-2")["last_error"].dump(), HasSubstr("assay-worker"));
  std::filesystem::rename(program + ".away", program);
  EXPECT_TRUE(AwaitState(site, "a-2", "active"));
}

}  // namespace
}  // namespace assay::testing
