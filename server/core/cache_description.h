// What records about node caches are made of: see description.h.

#ifndef SERVER_CORE_CACHE_DESCRIPTION_H_
#define SERVER_CORE_CACHE_DESCRIPTION_H_

#include "server/core/described.h"
#include "server/core/node_cache.h"

namespace assay::core {

template <class A, Is<CacheOrder> T>
constexpr void Fields(A& a, T& v) {
  a("number", v.number);
  a("action", v.action);
  a("dataset", v.dataset);
  a("path", v.path);
  a("digest", v.digest);
  a("state", v.state);
  a("reason", v.reason);
  a("created_at_us", v.created_at_us, ShownAs("create_time"));
  a("ended_at_us", v.ended_at_us, ShownAs("end_time"));
  a.Added("failure_count", v.failure_count);
  a.Added("retry_at_us", v.retry_at_us, ShownAs("retry_time"));
}

template <class A, Is<CachedDataset> T>
constexpr void Fields(A& a, T& v) {
  a("digest", v.digest);
  a("name", v.name);
  a("files", v.files);
  a("files_total", v.files_total);
  a("bytes", v.bytes);
  a("bytes_total", v.bytes_total);
  a("is_pinned", v.is_pinned);
  a("is_in_use", v.is_in_use);
}

template <class A, Is<CacheReport> T>
constexpr void Fields(A& a, T& v) {
  a("number", v.number);
  a("is_done", v.is_done);
  a("problem", v.problem);
  a("files", v.files);
  a("files_total", v.files_total);
  a("bytes", v.bytes);
  a("bytes_total", v.bytes_total);
  a("datasets", v.datasets);
  a("look_problem", v.look_problem);
  a("is_temporary", v.is_temporary);
}

}  // namespace assay::core

#endif  // SERVER_CORE_CACHE_DESCRIPTION_H_
