#include "common/client/comparison.h"

#include "gtest/gtest.h"

namespace assay::client {
namespace {

const Json& One() {
  static const auto* const kJson = new Json(
      {{"id", "e-1"}, {"state", "valid"}, {"hyperparameters", {{"lr", 0.5}, {"opt", "adam"}}}});
  return *kJson;
}

const Json& Other() {
  static const auto* const kJson =
      new Json({{"id", "e-2"}, {"state", "valid"}, {"hyperparameters", {{"lr", 0.25}}}});
  return *kJson;
}

TEST(CompareResourcesTest, ShowsWhatDiffersByTheNameOfItsField) {
  const Json rows = CompareResources({"e-1", "e-2"}, {One(), Other()}, /*is_all=*/false);

  EXPECT_EQ(
      rows.dump(),
      R"([{"field":"hyperparameters.lr","differs":true,"e-1":"0.5","e-2":"0.25","ratio":"0.5"},)"
      R"({"field":"hyperparameters.opt","differs":true,"e-1":"adam"}])");
}

TEST(CompareResourcesTest, AllShowsWhatAgreesButNoIdentities) {
  const Json rows = CompareResources({"e-1", "e-2"}, {One(), Other()}, /*is_all=*/true);

  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0]["field"], "state");
  EXPECT_EQ(rows[0]["differs"], false);
}

}  // namespace
}  // namespace assay::client
