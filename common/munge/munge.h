// Credentials of munge: a text that proves as which user, and on which host, a process has made it,
// to whoever shares a key with that host. Made and opened by the daemon munged of either host; one
// is opened once.

#ifndef COMMON_MUNGE_MUNGE_H_
#define COMMON_MUNGE_MUNGE_H_

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace assay {

// What each begins with.
inline constexpr absl::string_view kMungePrefix = "MUNGE:";

// What one says when it is opened.
struct MungeCredential {
  std::string payload;
  uid_t uid = 0;        // of who made it
  std::string address;  // IPv4, of the host where it was made, as its munged knows it
};

// A credential with `payload`, which `reader` alone can open, within a minute. `socket`: munged's;
// empty: where munge has it. UNAVAILABLE with the socket and the remedy. Thread-safe; blocks.
absl::StatusOr<std::string> MungeEncode(const std::string& socket, uid_t reader,
                                        const std::string& payload);

// Opens `credential`. PERMISSION_DENIED if it is none, or one of another key, too old or too new,
// for another user, or was opened before; UNAVAILABLE as above. Thread-safe; blocks.
absl::StatusOr<MungeCredential> MungeDecode(const std::string& socket,
                                            const std::string& credential);

}  // namespace assay

#endif  // COMMON_MUNGE_MUNGE_H_
