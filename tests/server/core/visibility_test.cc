#include "server/core/visibility.h"

#include <string>

#include "gtest/gtest.h"

namespace assay::core {
namespace {

constexpr int64_t kNowUs = 1'000'000;

const VisibleTo kNobody = {.now_us = kNowUs};
const VisibleTo kPublic = {.sees_published = true, .now_us = kNowUs};
const VisibleTo kLbnl = {.organization = "LBNL", .sees_published = true, .now_us = kNowUs};
const VisibleTo kAll = {.sees_all = true, .now_us = kNowUs};

// The specification's table (review.md, 2.6), for entries that are in no round of review: rows are
// entries, columns who asks.
TEST(VisibilityTest, SightIsAsSpecified) {
  struct Case {
    std::string name;
    Disclosure entry;
    Sight nobody, everybody, lbnl, all;
  };
  constexpr Sight kNo = Sight::kNothing;
  constexpr Sight kPart = Sight::kPublished;
  constexpr Sight kWhole = Sight::kWhole;
  const Case cases[] = {
      {"own", {"LBNL", 0}, kNo, kNo, kWhole, kWhole},
      {"own, published", {"LBNL", kNowUs}, kNo, kPart, kWhole, kWhole},
      {"a rival's", {"NVIDIA", 0}, kNo, kNo, kNo, kWhole},
      {"a rival's, published now", {"NVIDIA", kNowUs}, kNo, kPart, kPart, kWhole},
      {"a rival's, published later", {"NVIDIA", kNowUs + 1}, kNo, kNo, kNo, kWhole},
      {"joint", {"LBNL+NVIDIA", 0}, kNo, kNo, kWhole, kWhole},
      {"joint, last of three", {"A+B+LBNL", 0}, kNo, kNo, kWhole, kWhole},
      {"joint without us", {"NVIDIA+Dell", kNowUs}, kNo, kPart, kPart, kWhole},
      {"of one whose name holds ours", {"LBNL2", 0}, kNo, kNo, kNo, kWhole},
      {"of one whose name ends with ours", {"NotLBNL", 0}, kNo, kNo, kNo, kWhole},
      {"of nobody", {"", 0}, kNo, kNo, kNo, kWhole},
      {"a time before any", {"NVIDIA", -5}, kNo, kNo, kNo, kWhole},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(SightOf(kNobody, c.entry), c.nobody) << c.name;
    EXPECT_EQ(SightOf(kPublic, c.entry), c.everybody) << c.name;
    EXPECT_EQ(SightOf(kLbnl, c.entry), c.lbnl) << c.name;
    EXPECT_EQ(SightOf(kAll, c.entry), c.all) << c.name;
  }
}

TEST(VisibilityTest, WhoIsBornSeesNothing) {
  EXPECT_FALSE(MaySee(VisibleTo{}, {"", 0}));
  EXPECT_FALSE(MaySee(VisibleTo{}, {"LBNL", 1}));
}

TEST(VisibilityTest, AnOrganizationIsWrittenAsItIs) {
  EXPECT_TRUE(IsMember("TACC", "TACC"));
  EXPECT_FALSE(IsMember("tacc", "TACC"));
  EXPECT_FALSE(IsMember("", ""));
  EXPECT_FALSE(IsMember("", "A+B"));
  EXPECT_TRUE(IsMember("A+B", "A+B")) << "a token of the joint name";
  EXPECT_FALSE(IsMember("A+B", "A")) << "nor of one of its members";
}

}  // namespace
}  // namespace assay::core
