#include "server/web/course_cache.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace assay::web {
namespace {

std::string KeyOf(const std::string& sha256, const std::string& quality_key) {
  return absl::StrCat(sha256, " ", quality_key);
}

}  // namespace

CourseCache::Course CourseCache::Find(const std::string& sha256, const std::string& quality_key) {
  const MutexLock lock(&mutex_);
  const auto found = by_key_.find(KeyOf(sha256, quality_key));
  if (found == by_key_.end()) return nullptr;
  items_.splice(items_.begin(), items_, found->second);
  return found->second->course;
}

void CourseCache::Put(const std::string& sha256, const std::string& quality_key, Course course) {
  Item item{.key = KeyOf(sha256, quality_key), .course = std::move(course)};
  item.bytes = sizeof(Item) + sizeof(client::RunCourse) + 2 * item.key.size() +
               item.course->points.capacity() * sizeof(client::QualityPoint);
  const MutexLock lock(&mutex_);
  if (item.bytes > bytes_max_ || by_key_.contains(item.key)) return;
  bytes_ += item.bytes;
  items_.push_front(std::move(item));
  by_key_[items_.front().key] = items_.begin();
  while (bytes_ > bytes_max_) {
    bytes_ -= items_.back().bytes;
    by_key_.erase(items_.back().key);
    items_.pop_back();
  }
}

size_t CourseCache::bytes() const {
  const MutexLock lock(&mutex_);
  return bytes_;
}

}  // namespace assay::web
