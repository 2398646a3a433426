// Events about datasets in the caches of nodes: see event.h.

#ifndef SERVER_CORE_CACHE_EVENT_H_
#define SERVER_CORE_CACHE_EVENT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#include "server/core/node_cache.h"

namespace assay::core {

// What an operator wants of a dataset in the cache of a node. It is carried out under the number of
// this event, and takes the place of the same or the opposite order about the dataset.
struct CacheOrdered {
  static constexpr absl::string_view kType = "CacheOrdered";
  static constexpr int kVersion = 1;
  std::string worker;
  CacheAction action = CacheAction::kStage;
  std::string dataset;
  std::string path;
  std::string digest;
  bool operator==(const CacheOrdered&) const = default;
};

struct CacheOrderEnded {
  static constexpr absl::string_view kType = "CacheOrderEnded";
  static constexpr int kVersion = 1;
  std::string worker;
  int64_t number = 0;
  std::string problem;  // why it has failed; empty: it is done
  bool operator==(const CacheOrderEnded&) const = default;
};

// A try has failed, for a reason that may pass by itself.
struct CacheOrderPostponed {
  static constexpr absl::string_view kType = "CacheOrderPostponed";
  static constexpr int kVersion = 1;
  std::string worker;
  int64_t number = 0;
  std::string problem;
  int64_t retry_at_us = 0;
  bool operator==(const CacheOrderPostponed&) const = default;
};

// The time for another try has come: the order is carried out under the number of this event.
struct CacheOrderRetried {
  static constexpr absl::string_view kType = "CacheOrderRetried";
  static constexpr int kVersion = 1;
  std::string worker;
  int64_t number = 0;  // until now
  bool operator==(const CacheOrderRetried&) const = default;
};

}  // namespace assay::core

#endif  // SERVER_CORE_CACHE_EVENT_H_
