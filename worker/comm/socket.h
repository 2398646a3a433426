// TCP sockets, as far as the rendezvous needs them. All are non-blocking and close-on-exec.

#ifndef WORKER_COMM_SOCKET_H_
#define WORKER_COMM_SOCKET_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/file.h"

namespace assay::comm {

struct HostPort {
  std::string host;
  std::string port;
};

// "host:port" or "[v6-address]:port". INVALID_ARGUMENT otherwise.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view address);

// Listens on `address`; port 0 takes a free one. UNAVAILABLE if that is impossible.
absl::StatusOr<UniqueFd> ListenOn(absl::string_view address);

// Makes a listening socket that this process was started with one of its own: non-blocking and
// close-on-exec. INVALID_ARGUMENT: `fd` is no listening socket.
absl::Status AdoptListener(int fd);

// One attempt to connect. UNAVAILABLE: refused, or the host is unknown or unreachable.
// DEADLINE_EXCEEDED: no answer by `deadline`.
absl::StatusOr<UniqueFd> ConnectTo(absl::string_view address, const Clock& clock,
                                   MonoTime deadline);

// The next connection of a listener; a closed descriptor if there is none.
UniqueFd AcceptFrom(int listener);

// Both ends as "host:port", with numbers; "?" if not connected.
std::string LocalAddress(int fd);
std::string PeerAddress(int fd);

// poll(2)'s timeout for what is left until `deadline`: 0 once it has passed, at most `longest`.
int PollTimeoutMs(const Clock& clock, MonoTime deadline, absl::Duration longest);

}  // namespace assay::comm

#endif  // WORKER_COMM_SOCKET_H_
