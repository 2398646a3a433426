#include "common/json_document.h"

#include <string>

#include "gtest/gtest.h"

namespace assay {
namespace {

std::string Nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') +
         std::string(static_cast<size_t>(depth), ']');
}

TEST(JsonDocumentTest, NothingDeeperThanTheLimitBecomesADocument) {
  EXPECT_FALSE(ParseJsonDocument<nlohmann::json>(Nested(kJsonDocumentDepthMax)).is_discarded());
  EXPECT_TRUE(ParseJsonDocument<nlohmann::json>(Nested(kJsonDocumentDepthMax + 1)).is_discarded());
  // Printing this one would take a frame for each bracket.
  EXPECT_TRUE(ParseJsonDocument<nlohmann::ordered_json>(Nested(1'000'000)).is_discarded());
}

TEST(JsonDocumentTest, BracketsInStringsNestNothing) {
  const std::string text = "[\"\\\"" + std::string(1000, '[') + "\", 1]";

  EXPECT_EQ(ParseJsonDocument<nlohmann::json>(text)[1], 1);
}

TEST(JsonDocumentTest, WhatIsNoJsonIsDiscarded) {
  for (const char* text : {"", "{", "[1,]", "\"\xFF\"", "nul", "]]]]"})
    EXPECT_TRUE(ParseJsonDocument<nlohmann::json>(text).is_discarded()) << text;
}

}  // namespace
}  // namespace assay
