// The courses of runs whose logs have been read before. A log has ended when it has a digest, so
// what it tells stays true for ever. Whoever asks has seen the run that names the digest: the
// coordinator has said that he may read it.

#ifndef SERVER_WEB_COURSE_CACHE_H_
#define SERVER_WEB_COURSE_CACHE_H_

#include <cstddef>
#include <list>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"

#include "common/client/run_course.h"
#include "common/mutex.h"

namespace assay::web {

// Thread-safe.
class CourseCache {
 public:
  using Course = std::shared_ptr<const client::RunCourse>;

  // Holds about so many bytes; what was not asked for longest goes first.
  explicit CourseCache(size_t bytes_max = kBytesMax) : bytes_max_(bytes_max) {}

  // Of the log of that digest, read for that quality; null if it is not here.
  Course Find(const std::string& sha256, const std::string& quality_key);
  void Put(const std::string& sha256, const std::string& quality_key, Course course);

  size_t bytes() const;

 private:
  static constexpr size_t kBytesMax = 64 << 20;

  struct Item {
    std::string key;
    Course course;
    size_t bytes = 0;
  };

  const size_t bytes_max_;
  mutable Mutex mutex_;
  std::list<Item> items_ ABSL_GUARDED_BY(mutex_);  // the one that was asked for last is first
  absl::flat_hash_map<std::string, std::list<Item>::iterator> by_key_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace assay::web

#endif  // SERVER_WEB_COURSE_CACHE_H_
