#include "common/url.h"

#include "gtest/gtest.h"

namespace assay {
namespace {

TEST(UrlTest, EncodesEveryByteThatMeansSomethingInUrls) {
  EXPECT_EQ(EncodeUrl("a b/c?&=#\"'<é"), "a%20b%2Fc%3F%26%3D%23%22%27%3C%C3%A9");
  EXPECT_EQ(EncodeUrl("Az09-._~"), "Az09-._~");
}

}  // namespace
}  // namespace assay
