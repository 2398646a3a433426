// An operator has nodes keep a dataset between runs: the order is carried out by an agent that was
// not there when it was given, and says what came of it.

#include <signal.h>

#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "tests/e2e/site.h"
#include "tests/support/await.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kLauncher[] = "launcher { kind: \"attach\" }";

// Agents with caches, and what operators see of them.
class CachedSite {
 public:
  CachedSite() : coordinator_(&site_, kLauncher) { ProvideBeacons(site_, "small", 24, 8); }

  Worker& Start(const std::string& name) {
    const std::string config = absl::StrCat(
        "node_cache { directory: \"", site_.Path(absl::StrCat("cache-", name)), "\" quota_gb: 1 }");
    return workers_.emplace_back(site_, name, coordinator_.address(),
                                 Worker::Place{.config = config});
  }
  // As `assay dataset nodes` has it.
  Json Node(const std::string& name = "n0") const {
    const Json nodes = site_.AssayJson({"dataset", "nodes", "small"});
    for (const Json& node : nodes.value("items", Json::array()))
      if (node["id"] == name) return node;
    return Json::object();
  }
  bool AwaitState(const std::string& state, const std::string& name = "n0") const {
    return Await([&] { return Node(name).value("state", "") == state; });
  }
  // `assay dataset VERB small ... --wait`.
  Outcome Order(const std::string& verb, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"dataset", verb, "small", "--timeout", "60s"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return site_.Assay(arguments);
  }
  const Site& site() const { return site_; }

 private:
  Site site_;
  const Coordinator coordinator_;
  std::deque<Worker> workers_;
};

TEST(DatasetCacheTest, ADatasetIsStagedToANodeAndEvicted) {
  CachedSite nodes;
  const Worker& first = nodes.Start("n0");
  ASSERT_TRUE(nodes.AwaitState("absent")) << nodes.Node();

  SignalGroup(first.process(), SIGKILL).IgnoreError();
  const Outcome ordered = nodes.site().Assay({"dataset", "stage", "small"});
  ASSERT_EQ(ordered.exit_code, 0) << ordered.Text();
  EXPECT_EQ(nodes.Node()["state"], "waiting") << nodes.Node();
  nodes.Start("n0");
  const Outcome staged = nodes.Order("stage");
  EXPECT_EQ(staged.exit_code, 0) << staged.Text();
  const Json node = nodes.Node();
  EXPECT_EQ(node["state"], "complete") << node;
  EXPECT_EQ(node["files"], node["files_total"]);
  EXPECT_GT(node["bytes"], 0);

  EXPECT_EQ(nodes.Order("pin").exit_code, 0);
  EXPECT_EQ(nodes.Node()["is_pinned"], true) << nodes.Node();
  const Outcome kept = nodes.Order("evict");
  EXPECT_EQ(kept.exit_code, 1) << kept.Text();
  EXPECT_THAT(kept.err, HasSubstr("unpin it first"));
  EXPECT_EQ(nodes.Order("unpin").exit_code, 0);
  const Outcome evicted = nodes.Order("evict");
  EXPECT_EQ(evicted.exit_code, 0) << evicted.Text();
  EXPECT_EQ(nodes.Node()["state"], "absent") << nodes.Node();
  const Outcome refused = nodes.site().Assay({"dataset", "stage", "small", "--node", "n7"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.Text(), HasSubstr("assay node list"));
  const Outcome audit = nodes.site().Assay({"admin", "audit"});
  EXPECT_THAT(audit.out, HasSubstr("CacheOrderEnded")) << audit.Text();
}

TEST(DatasetCacheTest, WhatCannotBeReadNowIsTriedAgainAndArchivesWillDo) {
  CachedSite nodes;
  const Site& site = nodes.site();
  nodes.Start("n0");
  const std::string source = site.Path("datasets/small");
  const std::string packed = site.Path("packed");
  const Outcome packing = site.Assay({"dataset", "pack", source, packed});
  ASSERT_EQ(packing.exit_code, 0) << packing.Text();
  ASSERT_TRUE(nodes.AwaitState("absent")) << nodes.Node();

  ASSERT_EQ(rename(source.c_str(), site.Path("away").c_str()), 0);
  const Outcome ordered = site.Assay({"dataset", "stage", "small"});
  ASSERT_EQ(ordered.exit_code, 0) << ordered.Text();
  EXPECT_TRUE(Await([&] {
    return nodes.Node().value("reason", "").find("failed 1 time, again in ") == 0;
  })) << nodes.Node();
  ASSERT_EQ(rename(site.Path("away").c_str(), source.c_str()), 0);
  EXPECT_TRUE(nodes.AwaitState("complete")) << "by itself: " << nodes.Node();

  EXPECT_EQ(nodes.Order("evict").exit_code, 0);
  const Outcome unpacked = nodes.Order("stage", {"--from-archives", packed});
  EXPECT_EQ(unpacked.exit_code, 0) << unpacked.Text();
  EXPECT_EQ(nodes.Node()["state"], "complete") << nodes.Node();
  EXPECT_EQ(nodes.Node()["order"]["path"], packed) << nodes.Node();
}

TEST(DatasetCacheTest, ARunIsPlacedOnTheNodesThatHaveItsDataset) {
  CachedSite nodes;
  const Site& site = nodes.site();
  for (const char* name : {"n0", "n1", "n2"})
    nodes.Start(name);
  for (const char* name : {"n0", "n1", "n2"})
    ASSERT_TRUE(nodes.AwaitState("absent", name)) << nodes.Node(name);
  const Outcome staged = nodes.Order("stage", {"--node", "n1", "--node", "n2"});
  ASSERT_EQ(staged.exit_code, 0) << staged.Text();

  const Outcome submitted = site.Assay({"submit", WriteSubmission(site, "entry.toml", {})});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.Text();
  const std::string run = site.AssayJson({"entry", "show", "@last"})["runs"][0];
  EXPECT_TRUE(Await([&] { return site.AssayJson({"run", "show", run}).contains("nodes"); }));
  const Json shown = site.AssayJson({"run", "show", run});
  EXPECT_EQ(shown["nodes"], Json::array({"n1", "n2"})) << shown;
  EXPECT_EQ(shown["cached_nodes"], Json::array({"n1", "n2"})) << shown;
  EXPECT_THAT(site.Assay({"why", "@last"}).Text(),
              HasSubstr("2 of the 2 nodes had dataset small in the cache"));
  site.Assay({"cancel", "@last", "--reason", "that was all"});
}

}  // namespace
}  // namespace assay::testing
