// A client stream that comes in pieces and goes to disk: read a message, do what it says, read the
// next. One thing happens at a time. A client that stays silent between two messages for longer
// than SilenceWatch allows is let go with DEADLINE_EXCEEDED.

#ifndef SERVER_API_PIECE_STREAM_H_
#define SERVER_API_PIECE_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/rpc/status_grpc.h"
#include "server/api/limits.h"
#include "server/runtime/silence_watch.h"

namespace assay::api {

// Deletes itself when the call is over.
template <typename Message>
class PieceStream : public grpc::ServerReadReactor<Message> {
 public:
  void OnReadDone(bool ok) final {
    if (!turn_->TakeBack()) return;
    if (!ok) return Complete();
    const absl::Status limits = CheckLimits(message_);
    limits.ok() ? Take(&message_) : End(limits);
  }
  // Nothing to do: the read or the step under way ends the call.
  void OnCancel() final {}
  void OnDone() final { delete this; }

 protected:
  explicit PieceStream(runtime::SilenceWatch* silences)
      : turn_(silences->Watch([this] {
          End(absl::DeadlineExceededError(absl::StrCat(
              "nothing has come for ", absl::FormatDuration(runtime::SilenceWatch::kLimit),
              ": send it again, without a pause")));
        })) {}

  // Does what a message, which is within its limits, says; then calls Next or End, once.
  virtual void Take(Message* message) = 0;
  // The client has sent everything, or is gone. Calls End, once.
  virtual void Complete() = 0;
  // Removes all that was written, then calls `done`. Called once, if the call ends with an error.
  virtual void Drop(absl::AnyInvocable<void()> done) = 0;

  // Asks for the next message.
  void Next() {
    turn_->GiveToPeer();
    this->StartRead(&message_);
  }
  // Ends the call. Nothing of it may be touched afterwards.
  void End(const absl::Status& status) {
    if (status.ok()) return this->Finish(grpc::Status::OK);
    Drop([this, status] { this->Finish(ToGrpc(status)); });
  }

 private:
  // Shared with the watch, which looks whether there still is one.
  const std::shared_ptr<runtime::SilenceWatch::Turn> turn_;
  Message message_;  // gRPC's in the peer's turn
};

}  // namespace assay::api

#endif  // SERVER_API_PIECE_STREAM_H_
