#include "common/secret.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::MatchesRegex;

TEST(SecretTest, TokensCarryThePrefixAndNeverRepeat) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string token = MakeToken();
    EXPECT_THAT(token, MatchesRegex("assay_[a-z2-7]{32}"));
    EXPECT_TRUE(seen.insert(token).second);
  }
}

TEST(SecretTest, TheStoredFormIsTheSha256OfTheToken) {
  // FIPS 180-4 example "abc".
  EXPECT_EQ(TokenHash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(SecretTest, UuidsSayTheirVersionAndVariant) {
  EXPECT_THAT(MakeUuid(),
              MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_NE(MakeUuid(), MakeUuid());
}

TEST(SecretTest, SeedsAreDistinctAndFitInto31Bits) {
  const std::vector<int64_t> seeds = MakeSeeds(1000);
  EXPECT_EQ(std::set<int64_t>(seeds.begin(), seeds.end()).size(), 1000u);
  for (const int64_t seed : seeds) {
    EXPECT_GT(seed, 0);
    EXPECT_LT(seed, int64_t{1} << 31);
  }
}

}  // namespace
}  // namespace assay
