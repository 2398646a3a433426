// assayd --verify: looks at everything that is kept where the daemon does not start.

#ifndef SERVER_OFFLINE_VERIFY_H_
#define SERVER_OFFLINE_VERIFY_H_

#include <cstdint>
#include <ostream>

#include "absl/status/statusor.h"

#include "assay/v1/config.pb.h"

namespace assay {

// Writes each fault to `out` as it is found, a line of text or a JSON object a line, and a summary
// at the end; returns how many there were. NOT_FOUND if there is no data directory;
// FAILED_PRECONDITION if a daemon runs on it: then use assay admin verify.
absl::StatusOr<int64_t> VerifyOffline(const v1::ServerConfig& config, bool is_json,
                                      std::ostream& out);

}  // namespace assay

#endif  // SERVER_OFFLINE_VERIFY_H_
