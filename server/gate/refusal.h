// Tells a caller who is not let in why, in the words of gRPC, and without gRPC: a caller who is
// known but has no right to be here (a certificate that was revoked, a token that has expired, a
// user who is not listed) gets a status that names the reason, not a broken connection.

#ifndef SERVER_GATE_REFUSAL_H_
#define SERVER_GATE_REFUSAL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/gate/frame_scanner.h"

namespace assay::gate {

// One connection. Not thread-safe.
class Refusal {
 public:
  explicit Refusal(absl::Status reason) : reason_(std::move(reason)) {}

  // What to send first.
  static std::string Greeting();

  // What to send after the client's next `bytes`: nothing until its first call arrives, then the
  // answer to that call, after which the connection is to be closed. INVALID_ARGUMENT if it does
  // not speak HTTP/2.
  absl::StatusOr<std::string> Answer(absl::string_view bytes);

 private:
  const absl::Status reason_;
  FrameScanner scanner_;
};

}  // namespace assay::gate

#endif  // SERVER_GATE_REFUSAL_H_
