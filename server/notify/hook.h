// Who is told of a change: in the daemon a command of the operator's, in tests whoever wants to
// know.

#ifndef SERVER_NOTIFY_HOOK_H_
#define SERVER_NOTIFY_HOOK_H_

#include <string>

#include "absl/status/status.h"

namespace assay::notify {

class Hook {
 public:
  virtual ~Hook() = default;

  // Tells the document of a notice (notice.h) and blocks until that is done. CANCELLED: the daemon
  // ends, so it is told again at the next start. Any other error: it is to be told again.
  virtual absl::Status Deliver(const std::string& document) = 0;
};

}  // namespace assay::notify

#endif  // SERVER_NOTIFY_HOOK_H_
