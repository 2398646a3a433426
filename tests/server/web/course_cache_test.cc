#include "server/web/course_cache.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace assay::web {
namespace {

CourseCache::Course CourseOf(size_t points) {
  auto course = std::make_shared<client::RunCourse>();
  course->points.resize(points);
  return course;
}

TEST(CourseCacheTest, HoldsWhatALogTellsForEachQuality) {
  CourseCache cache;
  EXPECT_EQ(cache.Find("ab", "eval_error"), nullptr);
  const CourseCache::Course course = CourseOf(3);
  cache.Put("ab", "eval_error", course);

  EXPECT_EQ(cache.Find("ab", "eval_error"), course);
  EXPECT_EQ(cache.Find("ab", "eval_accuracy"), nullptr);
  EXPECT_EQ(cache.Find("cd", "eval_error"), nullptr);
}

TEST(CourseCacheTest, LetsGoOfWhatWasNotAskedForLongest) {
  constexpr size_t kBytesMax = 100'000;
  CourseCache cache(kBytesMax);
  cache.Put("often", "q", CourseOf(100));
  for (int i = 0; i < 1000; ++i) {
    cache.Put(absl::StrCat("log ", i), "q", CourseOf(100));
    ASSERT_NE(cache.Find("often", "q"), nullptr) << i;
    ASSERT_LE(cache.bytes(), kBytesMax) << i;
  }
  EXPECT_NE(cache.Find("log 999", "q"), nullptr);
  EXPECT_EQ(cache.Find("log 0", "q"), nullptr);

  cache.Put("larger than all", "q", CourseOf(100'000));
  EXPECT_EQ(cache.Find("larger than all", "q"), nullptr);
  EXPECT_NE(cache.Find("often", "q"), nullptr);
}

}  // namespace
}  // namespace assay::web
