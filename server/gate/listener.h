// Listening sockets: made here, never blocking.

#ifndef SERVER_GATE_LISTENER_H_
#define SERVER_GATE_LISTENER_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/file.h"

namespace assay::gate {

struct TcpListeners {
  std::vector<UniqueFd> sockets;  // one for each address that the host's name stands for
  std::string address;            // host:port, with the port that the kernel chose
};

// Listens on "host:port"; [host] for IPv6; port 0 is any free one. INVALID_ARGUMENT if the text is
// not that or the host is unknown; UNAVAILABLE if the port is taken or the address is not ours.
absl::StatusOr<TcpListeners> ListenTcp(const std::string& address);

// Listens at `path` (at most 107 bytes), with that mode; a socket left behind by a dead process is
// replaced. ALREADY_EXISTS if a live process listens there, or it is not a socket.
absl::StatusOr<UniqueFd> ListenUnix(const std::string& path, int mode);

// "10.1.2.3:4567", for people.
std::string AddressText(const sockaddr_storage& address);

// By which connections are counted together: the address, of IPv6 its first 64 bits, which is what
// one host is given.
std::string AddressGroup(const sockaddr_storage& address);

}  // namespace assay::gate

#endif  // SERVER_GATE_LISTENER_H_
