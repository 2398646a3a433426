#include "server/gate/relay.h"

#include <array>
#include <utility>

#include "common/log.h"
#include <boost/asio/post.hpp>

namespace assay::gate {
namespace {

// A record of TLS is at most 16 KiB; a plain socket may have more.
constexpr size_t kReadBytes = 64 << 10;
// What one connection moves in each direction before the others of its thread have their turn.
constexpr size_t kTurnBytes = 256 << 10;

}  // namespace

Relay::Relay(boost::asio::io_context* context, Stream client, Stream server,
             uint32_t message_bytes_max, std::string peer, absl::AnyInvocable<void()> on_over)
    : context_(context),
      client_(std::make_unique<End>(context, std::move(client))),
      server_(std::make_unique<End>(context, std::move(server))),
      peer_(std::move(peer)),
      on_over_(std::move(on_over)),
      guard_(message_bytes_max) {}

void Relay::Close() {
  if (client_ == nullptr) return;
  client_.reset();
  server_.reset();
  on_over_();
}

void Relay::Note(Io io, End* end) {
  if (io == Io::kWantRead) end->wants_read = true;
  if (io == Io::kWantWrite) end->wants_write = true;
}

bool Relay::Put(absl::string_view bytes, End* sink, Direction* direction) {
  size_t count = 0;
  const Io io = sink->stream.Write(bytes, &count);
  if (io == Io::kClosed) return false;
  Note(io, sink);
  const absl::string_view rest = bytes.substr(io == Io::kDone ? count : 0);
  direction->pending = std::string(rest);
  return true;
}

bool Relay::Move(End* source, End* sink, Direction* direction, FrameGuard* guard) {
  // Shared by all relays of a thread: nothing stays in it between two reads.
  static thread_local std::array<char, kReadBytes> buffer;
  for (size_t moved = 0; moved < kTurnBytes;) {
    if (!direction->pending.empty()) {
      const std::string pending = std::exchange(direction->pending, {});
      if (!Put(pending, sink, direction)) return false;
      if (direction->pending.size() == pending.size()) return true;
      continue;
    }
    if (direction->is_ended) return true;
    size_t count = 0;
    const Io io = source->stream.Read(buffer, &count);
    if (io == Io::kClosed) {
      direction->is_ended = true;
      sink->stream.ShutdownWrite();
      return true;
    }
    Note(io, source);
    if (io != Io::kDone) return true;
    const absl::string_view bytes(buffer.data(), count);
    if (guard != nullptr) {
      const absl::Status checked = guard->Check(bytes);
      if (!checked.ok()) {
        LOG(WARNING) << "gate: connection ended peer=" << Quoted(peer_)
                     << " reason=" << Quoted(checked.message());
        return false;
      }
    }
    if (!Put(bytes, sink, direction)) return false;
    moved += count;
  }
  is_unfinished_ = true;
  return true;
}

void Relay::Turn() {
  if (client_ == nullptr) return;
  is_unfinished_ = false;
  for (End* const end : {client_.get(), server_.get()}) {
    end->wants_read = false;
    end->wants_write = false;
  }
  const bool is_alive = Move(client_.get(), server_.get(), &up_, &guard_) &&
                        Move(server_.get(), client_.get(), &down_, nullptr);
  // Once gRPC has ended and all is delivered, nothing is left to do.
  if (!is_alive || down_.is_ended) return Close();
  if (is_unfinished_) boost::asio::post(*context_, [self = shared_from_this()] { self->Turn(); });
  Await(client_.get());
  Await(server_.get());
}

void Relay::Await(End* end) {
  // The end is looked at only while the relay is not over; it lives as long as that.
  if (end->wants_read && !end->is_awaiting_read) {
    end->is_awaiting_read = true;
    end->readiness.WaitRead([self = shared_from_this(), end](boost::system::error_code) {
      if (self->client_ == nullptr) return;
      end->is_awaiting_read = false;
      self->Turn();
    });
  }
  if (end->wants_write && !end->is_awaiting_write) {
    end->is_awaiting_write = true;
    end->readiness.WaitWrite([self = shared_from_this(), end](boost::system::error_code) {
      if (self->client_ == nullptr) return;
      end->is_awaiting_write = false;
      self->Turn();
    });
  }
}

}  // namespace assay::gate
