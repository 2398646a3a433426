#include "cli/terminal/suggest.h"

#include "gtest/gtest.h"

namespace assay {
namespace {

TEST(SuggestTest, DistanceCountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(cli::EditDistance("", ""), 0);
  EXPECT_EQ(cli::EditDistance("", "abc"), 3);
  EXPECT_EQ(cli::EditDistance("kitten", "sitting"), 3);  // Levenshtein's own example
  EXPECT_EQ(cli::EditDistance("sumbit", "submit"), 1);
  EXPECT_EQ(cli::EditDistance("ca", "abc"), 3);  // optimal string alignment, not Damerau's 2
}

TEST(SuggestTest, OnlyNearWordsAreOffered) {
  EXPECT_EQ(cli::Suggest("lst", {"show", "list"}), "list");
  EXPECT_EQ(cli::Suggest("exp", {"show", "export"}), "export");
  EXPECT_EQ(cli::Suggest("frobnicate", {"show", "list"}), "");
  EXPECT_EQ(cli::Suggest("", {"show"}), "");
}

}  // namespace
}  // namespace assay
