// Where a sample stays in a device's own memory: what those who read samples and those who compute
// on them must agree on.

#ifndef COMMON_CACHE_PLACE_H_
#define COMMON_CACHE_PLACE_H_

#include <cstdint>

namespace assay {

struct CachePlace {
  static constexpr int64_t kNowhere = -1;

  int64_t slot = kNowhere;
  bool is_there = false;  // it has come by before, so it is not read from the disk again

  // Whether the device keeps it from now on.
  bool is_to_keep() const { return slot != kNowhere && !is_there; }

  friend bool operator==(const CachePlace&, const CachePlace&) = default;
};

}  // namespace assay

#endif  // COMMON_CACHE_PLACE_H_
