// One connection whose owner is not known yet, or is not let in: the handshake, the question and
// its answer, or the refusal. All within a deadline, and in bounded memory.

#ifndef SERVER_GATE_VISITOR_H_
#define SERVER_GATE_VISITOR_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "server/auth/authenticator.h"
#include "server/gate/question.h"
#include "server/gate/readiness.h"
#include "server/gate/refusal.h"
#include "server/gate/stream.h"
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

namespace assay::gate {

// On the thread of its context. It keeps itself alive while it has something to wait for.
class Visitor : public std::enable_shared_from_this<Visitor> {
 public:
  // What a visitor needs from outside; outlives all visitors.
  struct Host {
    boost::asio::io_context* context = nullptr;
    // Hands a known client to gRPC. Takes the stream if OK; else says why not.
    std::function<absl::Status(Stream* stream, const auth::Evidence& evidence)> admit;
    std::function<void(const std::string& peer, const absl::Status& reason)> on_refusal;
    OnQuestion ask;
    absl::Duration patience;  // for the whole visit
  };

  // `peer`: the address, for the log. `on_over` is called once, at the end.
  Visitor(const Host* host, Stream stream, std::string peer, absl::AnyInvocable<void()> on_over);

  // Begins with the handshake, which ends in a question or in being known by a certificate.
  void StartTls();
  // Begins with somebody who is known already.
  void StartKnown(const auth::Evidence& evidence);

  // Ends the visit now.
  void Close();

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  using Step = void (Visitor::*)();

  void SetDeadline();
  void Handshake();
  // Reads a question until it is complete or wrong.
  void ReadQuestion();
  void Ask();
  void Reply(Answer answer);
  void Refuse(absl::Status reason);
  // Waits for the call that is to be refused.
  void ReadCall();
  // Sends outbox_, then waits until the client has read it and closes.
  void Send();
  void Linger();
  // Goes on with `step` once `io` allows it; ends the visit if it is kClosed.
  void Await(Io io, Step step);

  const Host* const host_;
  std::optional<Stream> stream_;  // gone once gRPC has it
  const std::string peer_;
  absl::AnyInvocable<void()> on_over_;
  std::unique_ptr<Readiness> readiness_;  // after stream_: must end first
  boost::asio::steady_timer deadline_;
  bool is_over_ = false;

  std::optional<Parser> parser_;
  std::string inbox_;  // read and not yet parsed
  std::optional<Refusal> refusal_;
  std::string outbox_;  // to be sent
  Step after_send_ = nullptr;
};

}  // namespace assay::gate

#endif  // SERVER_GATE_VISITOR_H_
