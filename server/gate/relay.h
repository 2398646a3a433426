// Carries bytes between a client that has shown who it is and gRPC, both ways, and keeps from gRPC
// what a FrameGuard stops.

#ifndef SERVER_GATE_RELAY_H_
#define SERVER_GATE_RELAY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/strings/string_view.h"

#include "server/gate/frame_guard.h"
#include "server/gate/readiness.h"
#include "server/gate/stream.h"
#include <boost/asio/io_context.hpp>

namespace assay::gate {

// One connection, on the thread of its context. It keeps itself alive while it has something to
// wait for. A direction holds at most what one read has given: who does not read what it is sent
// delays nobody else.
class Relay : public std::enable_shared_from_this<Relay> {
 public:
  // `server`: our end of the pair whose other end gRPC has. `on_over` is called once, at the end,
  // after both sockets are closed.
  Relay(boost::asio::io_context* context, Stream client, Stream server, uint32_t message_bytes_max,
        std::string peer, absl::AnyInvocable<void()> on_over);

  void Start() { Turn(); }

  // Ends the connection now.
  void Close();

  // The client will send no more; the rest of what it is owed is on its way.
  bool is_draining() const { return up_.is_ended; }

 private:
  struct End {
    End(boost::asio::io_context* context, Stream the_stream)
        : stream(std::move(the_stream)), readiness(context, stream.fd()) {}
    Stream stream;
    Readiness readiness;
    bool wants_read = false;  // decided anew in each turn
    bool wants_write = false;
    bool is_awaiting_read = false;
    bool is_awaiting_write = false;
  };
  struct Direction {
    std::string pending;  // read, checked, and not yet written
    bool is_ended = false;
  };

  // Moves what can be moved, then waits for what stops it.
  void Turn();
  // False if the connection must end.
  bool Move(End* source, End* sink, Direction* direction, FrameGuard* guard);
  // Writes a part of `bytes`, and keeps the rest for later.
  bool Put(absl::string_view bytes, End* sink, Direction* direction);
  static void Note(Io io, End* end);
  void Await(End* end);

  boost::asio::io_context* const context_;
  std::unique_ptr<End> client_;  // null once it is over
  std::unique_ptr<End> server_;
  const std::string peer_;
  absl::AnyInvocable<void()> on_over_;
  FrameGuard guard_;
  Direction up_;
  Direction down_;
  bool is_unfinished_ = false;  // a turn has moved as much as it may
};

}  // namespace assay::gate

#endif  // SERVER_GATE_RELAY_H_
