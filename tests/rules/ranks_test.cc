// Which divisions of the work over ranks can work, as docs/submitter.md and ADR 95 tell it.

#include "common/rules/ranks.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::rules {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Four ranks on one node.
const RankLayout kFour = {.benchmark = "cosmoflow", .ranks_per_node = 4};

const RankLayout kOnednn = {.benchmark = "cosmoflow", .backend = "onednn"};

struct Case {
  const char* what;
  Hyperparameters values;
  RankLayout layout = kFour;
  const char* rule_id = "";  // empty: nothing is wrong
  const char* found = "";
  const char* remedy = "";
};

void Expect(const Case& c) {
  const std::vector<Finding> findings = CheckRanks(c.values, c.layout);
  if (*c.rule_id == '\0') {
    EXPECT_THAT(findings, IsEmpty()) << c.what << ": " << Format("", findings[0]);
    return;
  }
  ASSERT_THAT(findings, SizeIs(1)) << c.what;
  EXPECT_EQ(findings[0].rule_id, c.rule_id) << c.what;
  EXPECT_EQ(findings[0].severity, Severity::kError) << c.what;
  EXPECT_THAT(findings[0].found, HasSubstr(c.found)) << c.what;
  EXPECT_THAT(findings[0].remedy, HasSubstr(c.remedy)) << c.what;
}

RankLayout Nodes(int64_t nodes, int64_t ranks_per_node) {
  return {.benchmark = "cosmoflow", .nodes = nodes, .ranks_per_node = ranks_per_node};
}

// Of cubes of so many voxels per side.
Hyperparameters Grid(JsonList parts, int64_t edge = 64) {
  return {{kSpatialGridKey, JsonValue(std::move(parts))}, {"cube_edge", edge}};
}

TEST(RanksTest, TakesWhatCanWork) {
  const Case cases[] = {
      {"nothing said", {}},
      {"each block 32 x 32", Grid({2, 2})},
      {"one group on two nodes", Grid({2, 2}), Nodes(2, 2)},
      {"two groups on each node", Grid({2, 1}), Nodes(3, 4)},
      {"the largest of cubes of 128", Grid({4, 4}, 128), Nodes(16, 1)},
      {"no division is fine anywhere", Grid({1, 1}), {.benchmark = "deepcam"}},
      {"an edge that is not known", {{"spatial_grid", JsonList{2, 2}}}, Nodes(1, 4)},
      {"blocks of 32 along one axis", Grid({4, 1}, 128)},
      {"a batch for each rank", {{"global_batch_size", 8}}},
      {"a batch for one group", {{"global_batch_size", 3}, {"spatial_grid", JsonList{2, 2}}}},
      {"one average of all gradients", {{"gradient_bucket_mib", 0}}, kOnednn},
      {"the largest buckets", {{"gradient_bucket_mib", 4096}}},
      {"no cache anywhere", {{"device_cache_mib", 0}}, kOnednn},
      {"a limit of memory", {{"memory_limit_mib", 2000}}, kOnednn},
      {"a cache on a GPU", {{"device_cache_mib", 40000}}, {.backend = "cuda-bf16"}},
      {"climate maps in float32", {}, {.benchmark = "deepcam", .backend = "onednn"}},
      {"cubes in bfloat16", {}, {.benchmark = "cosmoflow", .backend = "onednn-bf16"}},
      {"a benchmark of which nothing is known", {}, {.benchmark = "x", .backend = "onednn-bf16"}},
      {"a cache on a backend that is not known", {{"device_cache_mib", 40000}}},
  };
  for (const Case& c : cases)
    Expect(c);
}

TEST(RanksTest, NamesWhatCannotWork) {
  const Case cases[] = {
      {"a number", {{"spatial_grid", 2}}, kFour, "R-RNK-001", "2", "[2, 2]"},
      {"a text", {{"spatial_grid", "2x2"}}, kFour, "R-RNK-001", "2x2"},
      {"nothing", Grid({}), kFour, "R-RNK-001"},
      {"three axes", Grid({2, 2, 1}), kFour, "R-RNK-001"},
      {"half a part", Grid({2, 0.5}), kFour, "R-RNK-001", "0.5"},
      {"too many parts", Grid({65, 1}), kFour, "R-RNK-001"},
      {"no parts", Grid({0, 4}), kFour, "R-RNK-001"},
      {"climate maps", Grid({2, 1}), {.benchmark = "deepcam", .nodes = 2}, "R-RNK-002", "deepcam"},
      {"blocks of 16", Grid({4, 1}), kFour, "R-RNK-003", "cubes of 64", "1 or 2 parts"},
      {"blocks of 16 in height", Grid({1, 4}), kFour, "R-RNK-003"},
      {"cubes of 32", Grid({2, 1}, 32), Nodes(2, 1), "R-RNK-003", "cubes of 32", "leave"},
      {"too few ranks", Grid({2, 2}), Nodes(1, 2), "R-RNK-004", "2 ranks", "4, 8, 12"},
      {"a rank left over", Grid({2, 1}), Nodes(1, 3), "R-RNK-004", "groups of 2 for 3 ranks"},
      {"nodes cut groups", Grid({2, 1}), Nodes(2, 3), "R-RNK-005", "on nodes of 3"},
      {"a batch left over", {{"global_batch_size", 6}}, kFour, "R-RNK-006", "6 for 4 ranks", "4"},
      {"no batch", {{"global_batch_size", 0}}, kFour, "R-RNK-006"},
      {"half a sample", {{"global_batch_size", 4.5}}, kFour, "R-RNK-006"},
      {"a batch for one group of two",
       {{"global_batch_size", 3}, {"spatial_grid", JsonList{2, 1}}},
       kFour,
       "R-RNK-006",
       "2 groups"},
      {"a bucket of less than nothing", {{"gradient_bucket_mib", -3}}, kFour, "R-RNK-007", "-3"},
      {"half a bucket", {{"gradient_bucket_mib", 0.5}}, kFour, "R-RNK-007", "0.5", "0"},
      {"a bucket in words", {{"gradient_bucket_mib", "16"}}, kFour, "R-RNK-007", "16"},
      {"a huge bucket", {{"gradient_bucket_mib", 4097}}, kFour, "R-RNK-007", "4097"},
      {"a cache of less than nothing", {{"device_cache_mib", -1}}, kFour, "R-RNK-008", "-1"},
      {"a limit below nothing", {{"memory_limit_mib", -1}}, kFour, "R-RNK-011", "-1"},
      {"a limit in words", {{"memory_limit_mib", "2 GiB"}}, kFour, "R-RNK-011", "2 GiB"},
      {"a cache in the host's memory", {{"device_cache_mib", 100}}, kOnednn, "R-RNK-009", "onednn"},
      {"climate maps in bfloat16 on a CPU",
       {},
       {.benchmark = "deepcam", .backend = "onednn-bf16"},
       "R-RNK-010",
       "onednn-bf16 for deepcam",
       "choose onednn"},
  };
  for (const Case& c : cases)
    Expect(c);
}

TEST(RanksTest, TellsTwoMistakesAtOnce) {
  const std::vector<Finding> findings = CheckRanks(Grid({4, 1}), Nodes(1, 2));

  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_EQ(findings[0].rule_id, "R-RNK-004");
  EXPECT_EQ(findings[1].rule_id, "R-RNK-003");
}

TEST(RanksTest, SurvivesNumbersThatNobodyMeans) {
  EXPECT_THAT(CheckRanks(Grid({2, 1}), {.benchmark = "cosmoflow", .nodes = -3}), SizeIs(1));
  EXPECT_THAT(CheckRanks({{"global_batch_size", 1}},
                         {.benchmark = "cosmoflow", .nodes = 0, .ranks_per_node = 0}),
              IsEmpty());
}

}  // namespace
}  // namespace assay::rules
