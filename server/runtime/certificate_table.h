// From which generation on each worker's certificates are accepted, as of the last commit: looked
// up on any thread, without waiting.

#ifndef SERVER_RUNTIME_CERTIFICATE_TABLE_H_
#define SERVER_RUNTIME_CERTIFICATE_TABLE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "common/mutex.h"
#include "server/core/types.h"

namespace assay::runtime {

// Thread-safe.
class CertificateTable {
 public:
  // The first generation that is not revoked; 0 where none ever was.
  int64_t ValidFrom(absl::string_view worker) const;

  // Takes over what a committed state says.
  void Replace(const std::map<std::string, core::Worker>& workers);

 private:
  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, int64_t> valid_from_ ABSL_GUARDED_BY(mutex_);  // where above 0
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_CERTIFICATE_TABLE_H_
