// An operator has nodes keep a dataset between runs: the order is carried out by an agent that was
// not there when it was given, and says what came of it.

#include <signal.h>

#include <deque>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "tests/e2e/site.h"
#include "tests/support/await.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;

TEST(DatasetCacheTest, ADatasetIsStagedToANodeAndEvicted) {
  Site site;
  const Coordinator coordinator(&site, "launcher { kind: \"attach\" }");
  ProvideBeacons(site, "small", 24, 8);
  const std::string cache = site.Path("cache");
  const Worker::Place place{
      .config = absl::StrCat("node_cache { directory: \"", cache, "\" quota_gb: 1 }")};
  std::deque<Worker> workers;
  workers.emplace_back(site, "n0", coordinator.address(), place);
  const auto node = [&site] {
    const Json nodes = site.AssayJson({"dataset", "nodes", "small"});
    return nodes.is_object() && nodes.contains("items") && nodes["items"].size() == 1
               ? nodes["items"][0]
               : Json::object();
  };
  ASSERT_TRUE(Await([&] { return node().value("state", "") == "absent"; })) << node();

  SignalGroup(workers.back().process(), SIGKILL).IgnoreError();
  const Outcome ordered = site.Assay({"dataset", "stage", "small"});
  ASSERT_EQ(ordered.exit_code, 0) << ordered.Text();
  EXPECT_EQ(node()["state"], "waiting") << node();
  workers.emplace_back(site, "n0", coordinator.address(), place);
  const Outcome staged = site.Assay({"dataset", "stage", "small", "--timeout", "60s"});
  EXPECT_EQ(staged.exit_code, 0) << staged.Text();
  EXPECT_EQ(node()["state"], "complete") << node();
  EXPECT_EQ(node()["files"], node()["files_total"]);
  EXPECT_GT(node()["bytes"], 0);

  const Outcome evicted = site.Assay({"dataset", "evict", "small", "--timeout", "60s"});
  EXPECT_EQ(evicted.exit_code, 0) << evicted.Text();
  EXPECT_EQ(node()["state"], "absent") << node();
  const Outcome refused = site.Assay({"dataset", "stage", "small", "--node", "n7"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.Text(), HasSubstr("assay node list"));
  const Outcome audit = site.Assay({"admin", "audit"});
  EXPECT_THAT(audit.out, HasSubstr("CacheOrderEnded")) << audit.Text();
}

}  // namespace
}  // namespace assay::testing
