// Accepts connections on a Unix socket, asks the kernel who is at the other end, and hands each
// connection on.

#ifndef SERVER_AUTH_UNIX_LISTENER_H_
#define SERVER_AUTH_UNIX_LISTENER_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include "common/file.h"
#include "server/auth/peer_table.h"

namespace assay::auth {

class UnixListener {
 public:
  struct Options {
    std::string path;  // at most 107 bytes
    int mode = 0600;   // 0666 lets other users connect, so that their credentials can be seen
    PeerTable* peers = nullptr;
    // Called on the listener's thread with a connected, non-blocking descriptor, numbered by
    // `peers`, that the callee must close.
    absl::AnyInvocable<void(int fd)> on_connection;
  };

  // Listens; a socket left behind by a dead process is replaced. ALREADY_EXISTS if a live process
  // listens on `path`, or it is not a socket.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Start(Options options);

  // Stops accepting and removes the socket. Connections handed on stay open.
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

 private:
  UnixListener(Options options, UniqueFd socket, UniqueFd stop);
  void Run();
  void Accept();

  Options options_;
  const UniqueFd socket_;
  const UniqueFd stop_;  // an eventfd
  std::thread thread_;
};

}  // namespace assay::auth

#endif  // SERVER_AUTH_UNIX_LISTENER_H_
