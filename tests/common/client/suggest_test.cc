#include "common/client/suggest.h"

#include "gtest/gtest.h"

namespace assay {
namespace {

TEST(SuggestTest, DistanceCountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(client::EditDistance("", ""), 0);
  EXPECT_EQ(client::EditDistance("", "abc"), 3);
  EXPECT_EQ(client::EditDistance("kitten", "sitting"), 3);  // Levenshtein's own example
  EXPECT_EQ(client::EditDistance("sumbit", "submit"), 1);
  EXPECT_EQ(client::EditDistance("ca", "abc"), 3);  // optimal string alignment, not Damerau's 2
}

TEST(SuggestTest, OnlyNearWordsAreOffered) {
  EXPECT_EQ(client::Suggest("lst", {"show", "list"}), "list");
  EXPECT_EQ(client::Suggest("exp", {"show", "export"}), "export");
  EXPECT_EQ(client::Suggest("frobnicate", {"show", "list"}), "");
  EXPECT_EQ(client::Suggest("", {"show"}), "");
}

}  // namespace
}  // namespace assay
