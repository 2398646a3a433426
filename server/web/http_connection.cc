// The one source that includes Boost.Beast, which takes most of a minute to compile.
//
//   Client            one client, as its request sees it
//   ClientConnection  the same by its stream: handshake, then read, handle and write, in turns
//   Ticket            its request in the hands of the site, on any thread
//
// All of a connection happens on the server's thread; a Ticket posts there. So nothing is locked.

#include "server/web/http_connection.h"

#include <openssl/ssl.h>

#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"

#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream_base.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>

namespace assay::web {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;
using Error = boost::system::error_code;

// Bytes that may wait in memory for a parser: as much as one TLS record.
constexpr size_t kReadBytesMax = 16 << 10;
// From the server's close_notify to the client's: those who wait longer are cut.
constexpr auto kCloseTimeout = std::chrono::seconds(5);

using TlsStream = beast::ssl_stream<beast::tcp_stream>;
using PlainStream = beast::tcp_stream;

class Client : public Connection {
 public:
  // What a Ticket asks for, on the server's thread.
  virtual void Respond(HttpResponse response) = 0;
  virtual void Open(HttpResponse head, std::shared_ptr<ChunkSource> source,
                    std::string heartbeat) = 0;
  virtual void Write(std::string bytes, bool is_last) = 0;
  virtual ServerState* state() const = 0;
};

// `Stream` is TlsStream or PlainStream.
template <class Stream>
class ClientConnection final : public Client {
 public:
  // `stream`: what a Stream is made of.
  template <class... Parts>
  ClientConnection(std::string peer, ServerState* state, Parts&&... stream)
      : state_(state),
        peer_(std::move(peer)),
        stream_(std::forward<Parts>(stream)...),
        heartbeat_timer_(state->io),
        buffer_(state->limits.header_bytes_max + kReadBytesMax) {
    ++state_->by_address[peer_];
    state_->connections.insert(this);
    ++state_->connection_count;
  }
  ~ClientConnection() override {
    state_->connections.erase(this);
    if (--state_->by_address[peer_] == 0) state_->by_address.erase(peer_);
    --state_->connection_count;
  }
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  void Start() {
    if constexpr (kIsTls) {
      Expire(state_->limits.handshake);
      stream_.async_handshake(asio::ssl::stream_base::server, [self = Self()](Error error) {
        if (!error) self->ReadHeader();
      });
    } else {
      ReadHeader();
    }
  }

  void Respond(HttpResponse response) override;
  void Open(HttpResponse head, std::shared_ptr<ChunkSource> source, std::string heartbeat) override;
  void Write(std::string bytes, bool is_last) override;

  // The server ends.
  void Stop() override {
    if (source_ != nullptr) {
      DropSource();
      return Cut();
    }
    if (!is_handling_) Cut();  // the others end with their answer
  }

  void Cut() override {
    DropSource();
    Error ignored;
    beast::get_lowest_layer(stream_).socket().close(ignored);
  }

  ServerState* state() const override { return state_; }

 private:
  static constexpr bool kIsTls = std::is_same_v<Stream, TlsStream>;

  std::shared_ptr<ClientConnection> Self() {
    return std::static_pointer_cast<ClientConnection>(this->shared_from_this());
  }
  std::weak_ptr<ClientConnection> WeakSelf() { return Self(); }
  using Parser = http::request_parser<http::string_body>;

  void Expire(absl::Duration after) {
    beast::get_lowest_layer(stream_).expires_after(absl::ToChronoNanoseconds(after));
  }

  void ReadHeader() {
    if (state_->is_stopping) return Close();
    parser_.emplace();
    parser_->header_limit(state_->limits.header_bytes_max);
    parser_->body_limit(state_->limits.body_bytes_max);
    Expire(state_->limits.idle);
    http::async_read_header(stream_, buffer_, *parser_, [self = Self()](Error error, size_t) {
      if (error) return self->Refuse(error);
      self->ReadBody();
    });
  }

  void ReadBody() {
    const auto& head = parser_->get();
    is_head_ = head.method() == http::verb::head;
    version_ = head.version();
    if (const int refusal = JudgeHead(); refusal != 0) return RespondAndClose(refusal);
    Expire(state_->limits.body);
    if (beast::iequals(head[http::field::expect], "100-continue")) {
      static constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";
      asio::async_write(stream_, asio::buffer(kContinue, sizeof(kContinue) - 1),
                        [self = Self()](Error error, size_t) {
                          if (!error) self->ReadRest();
                        });
      return;
    }
    ReadRest();
  }

  // The status that a header is refused with; 0 if it is not. What two programs in a row could read
  // in two ways is refused (RFC 9112, section 6.1).
  int JudgeHead() const {
    const auto& head = parser_->get();
    if (version_ != 11 && version_ != 10) return 505;
    if (head.count(http::field::host) != 1 && version_ == 11) return 400;
    if (head.count(http::field::transfer_encoding) != 0 &&
        head.count(http::field::content_length) != 0)
      return 400;
    if (head.count(http::field::content_length) > 1) return 400;
    const auto target = head.target();
    if (target.empty() || target[0] != '/') return 400;
    if (head.count(http::field::content_encoding) != 0) return 415;
    return 0;
  }

  void ReadRest() {
    http::async_read(stream_, buffer_, *parser_, [self = Self()](Error error, size_t) {
      if (error) return self->Refuse(error);
      self->Handle();
    });
  }

  // What could not be read: those who sent something wrong are told, those who went are not.
  void Refuse(const Error& error) {
    if (error == http::error::header_limit) return RespondAndClose(431);
    if (error == http::error::body_limit) return RespondAndClose(413);
    if (error.category() == make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message)
      return RespondAndClose(400);
    if (error == beast::error::timeout || error == asio::error::eof) return Cut();
    Close();
  }
  void RespondAndClose(int status) {
    is_last_ = true;
    is_handling_ = true;
    Respond({.status = status,
             .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
             .body = absl::StrCat(
                 http::obsolete_reason(static_cast<http::status>(status)).to_string(), "\n")});
  }

  void Handle();
  void SendRest();
  void AfterResponse();
  void WriteChunk();
  void AfterChunk(bool is_last);
  void ArmHeartbeat();
  void WatchForEnd();
  void DropSource() {
    heartbeat_timer_.cancel();
    if (source_ == nullptr) return;
    --state_->open_count;
    std::exchange(source_, nullptr)->Gone();
  }
  void Close() {
    beast::get_lowest_layer(stream_).expires_after(kCloseTimeout);
    if constexpr (kIsTls) {
      stream_.async_shutdown([self = Self()](Error) { self->Cut(); });
    } else {
      Error ignored;
      stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
      stream_.async_read_some(asio::buffer(&unread_, 1),
                              [self = Self()](Error, size_t) { self->Cut(); });
    }
  }
  // As Close while WatchForEnd reads: the last chunk says that the response is whole, and the end
  // of the TLS session is not said.
  void CloseOpen() {
    DropSource();
    Error ignored;
    beast::get_lowest_layer(stream_).socket().shutdown(tcp::socket::shutdown_send, ignored);
    heartbeat_timer_.expires_after(kCloseTimeout);
    heartbeat_timer_.async_wait([weak = WeakSelf()](Error error) {
      const std::shared_ptr<ClientConnection> self = weak.lock();
      if (!error && self != nullptr) self->Cut();
    });
  }

  ServerState* const state_;
  const std::string peer_;
  Stream stream_;
  asio::steady_timer heartbeat_timer_;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  bool is_head_ = false;
  unsigned version_ = 11;
  bool is_last_ = false;      // the connection ends after this response
  bool is_handling_ = false;  // a request waits for its answer or its end
  // A whole response.
  http::response<http::string_body> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  // An open one.
  http::response<http::empty_body> head_;
  std::optional<http::response_serializer<http::empty_body>> head_serializer_;
  std::shared_ptr<ChunkSource> source_;
  std::string heartbeat_;
  std::string chunk_;  // on its way
  bool is_writing_ = false;
  bool is_chunk_last_ = false;
  bool is_chunk_heartbeat_ = false;
  std::optional<std::pair<std::string, bool>> waiting_;  // the source's, behind a heartbeat
  char unread_ = 0;
};

// A request in the site's hands. The connection is kept alive by it, and its destructor, on
// whatever thread, lets go on the server's.
class Ticket final : public Exchange {
 public:
  Ticket(std::shared_ptr<Client> connection, HttpRequest request)
      : connection_(std::move(connection)), request_(std::move(request)) {}
  ~Ticket() override {
    if (!is_answered_) Send({.status = 500, .headers = {{"Content-Type", "text/plain"}}});
    asio::io_context& io = connection_->state()->io;
    asio::post(io, [kept = std::move(connection_)] {});
  }
  const HttpRequest& request() const override { return request_; }
  void Send(HttpResponse response) override {
    if (is_answered_.exchange(true)) return;
    Post([response = std::move(response)](Client* connection) mutable {
      connection->Respond(std::move(response));
    });
  }
  void Open(HttpResponse head, std::shared_ptr<ChunkSource> source,
            std::string heartbeat) override {
    if (is_answered_.exchange(true)) return;
    Post([head = std::move(head), source = std::move(source),
          heartbeat = std::move(heartbeat)](Client* connection) mutable {
      connection->Open(std::move(head), std::move(source), std::move(heartbeat));
    });
  }
  void Write(std::string bytes) override {
    Post([bytes = std::move(bytes)](Client* connection) mutable {
      connection->Write(std::move(bytes), false);
    });
  }
  void Finish(std::string bytes) override {
    Post([bytes = std::move(bytes)](Client* connection) mutable {
      connection->Write(std::move(bytes), true);
    });
  }

 private:
  template <class Action>
  void Post(Action action) {
    asio::post(connection_->state()->io,
               [connection = connection_, action = std::move(action)]() mutable {
                 action(connection.get());
               });
  }
  std::shared_ptr<Client> connection_;
  const HttpRequest request_;
  std::atomic<bool> is_answered_ = false;
};

template <class Stream>
void ClientConnection<Stream>::Handle() {
  auto message = parser_->release();
  parser_.reset();
  is_last_ = !message.keep_alive();
  is_handling_ = true;
  ++state_->request_count;
  HttpRequest request;
  request.method = message.method_string().to_string();
  request.target = message.target().to_string();
  for (const auto& field : message)
    request.headers.push_back({field.name_string().to_string(), field.value().to_string()});
  request.body = std::move(message.body());
  request.peer = peer_;
  beast::get_lowest_layer(stream_).expires_never();
  state_->handler->Handle(std::make_shared<Ticket>(Self(), std::move(request)));
}

template <class Stream>
void ClientConnection<Stream>::Respond(HttpResponse response) {
  if (state_->is_stopping) is_last_ = true;
  response_ = {};
  response_.version(11);
  response_.result(static_cast<unsigned>(response.status));
  for (const HttpHeader& header : response.headers)
    response_.insert(header.name, header.value);
  response_.keep_alive(!is_last_);
  const bool has_body = response.status != 304 && response.status != 204;
  if (has_body) response_.content_length(response.body.size());
  if (has_body && !is_head_) response_.body() = std::move(response.body);
  serializer_.emplace(response_);
  // Of HEAD the length is that of GET, but no body follows.
  serializer_->split(is_head_);
  SendRest();
}

template <class Stream>
void ClientConnection<Stream>::SendRest() {
  Expire(state_->limits.stall);  // anew for each piece that the client takes
  const auto then = [self = Self()](Error error, size_t) {
    if (error) return self->Cut();
    const bool is_done =
        self->is_head_ ? self->serializer_->is_header_done() : self->serializer_->is_done();
    return is_done ? self->AfterResponse() : self->SendRest();
  };
  if (is_head_) {
    http::async_write_header(stream_, *serializer_, then);
  } else {
    http::async_write_some(stream_, *serializer_, then);
  }
}

template <class Stream>
void ClientConnection<Stream>::AfterResponse() {
  serializer_.reset();
  response_ = {};
  is_handling_ = false;
  if (is_last_ || state_->is_stopping) return Close();
  ReadHeader();
}

template <class Stream>
void ClientConnection<Stream>::Open(HttpResponse head, std::shared_ptr<ChunkSource> source,
                                    std::string heartbeat) {
  source_ = std::move(source);
  ++state_->open_count;
  if (state_->is_stopping) return Cut();
  if (version_ != 11) {  // which has no chunks
    DropSource();
    return RespondAndClose(505);
  }
  heartbeat_ = std::move(heartbeat);
  head_ = {};
  head_.version(11);
  head_.result(static_cast<unsigned>(head.status));
  for (const HttpHeader& header : head.headers)
    head_.insert(header.name, header.value);
  head_.chunked(true);
  head_.keep_alive(false);
  is_last_ = true;
  head_serializer_.emplace(head_);
  is_writing_ = true;
  Expire(state_->limits.stall);
  http::async_write_header(stream_, *head_serializer_, [self = Self()](Error error, size_t) {
    if (error) return self->Cut();
    self->is_writing_ = false;
    if (self->is_head_) return self->Cut();
    self->WatchForEnd();
    self->ArmHeartbeat();
    if (self->source_ != nullptr) self->source_->Next();
  });
}

// A client of an open response says nothing more: what it sends, or its end, ends the response.
template <class Stream>
void ClientConnection<Stream>::WatchForEnd() {
  beast::get_lowest_layer(stream_).expires_never();
  stream_.async_read_some(asio::buffer(&unread_, 1),
                          [self = Self()](Error, size_t) { self->Cut(); });
}

template <class Stream>
void ClientConnection<Stream>::ArmHeartbeat() {
  if (heartbeat_.empty()) return;
  heartbeat_timer_.expires_after(absl::ToChronoNanoseconds(state_->limits.heartbeat));
  heartbeat_timer_.async_wait([weak = WeakSelf()](Error error) {
    const std::shared_ptr<ClientConnection> self = weak.lock();
    if (error || self == nullptr || self->source_ == nullptr) return;
    if (self->is_writing_) return self->ArmHeartbeat();
    self->chunk_ = self->heartbeat_;
    self->is_chunk_heartbeat_ = true;
    self->is_chunk_last_ = false;
    self->WriteChunk();
  });
}

template <class Stream>
void ClientConnection<Stream>::Write(std::string bytes, bool is_last) {
  if (source_ == nullptr) return;
  if (is_writing_) {
    waiting_.emplace(std::move(bytes), is_last);
    return;
  }
  chunk_ = std::move(bytes);
  is_chunk_last_ = is_last;
  is_chunk_heartbeat_ = false;
  WriteChunk();
}

template <class Stream>
void ClientConnection<Stream>::WriteChunk() {
  is_writing_ = true;
  Expire(state_->limits.stall);  // of this write; the read beside it waits for ever
  const auto then = [self = Self()](Error error, size_t) {
    if (error) return self->Cut();
    self->AfterChunk(self->is_chunk_last_);
  };
  if (chunk_.empty()) {
    asio::post(state_->io, [then] { then(Error(), 0); });
    return;
  }
  asio::async_write(stream_, http::make_chunk(asio::buffer(chunk_)), then);
}

template <class Stream>
void ClientConnection<Stream>::AfterChunk(bool is_last) {
  is_writing_ = false;
  if (source_ == nullptr) return;
  if (is_last) {
    asio::async_write(stream_, http::make_chunk_last(), [self = Self()](Error error, size_t) {
      return error ? self->Cut() : self->CloseOpen();
    });
    return;
  }
  chunk_.clear();
  chunk_.shrink_to_fit();
  ArmHeartbeat();
  if (waiting_.has_value()) {
    auto [bytes, is_end] = *std::exchange(waiting_, std::nullopt);
    return Write(std::move(bytes), is_end);
  }
  if (!std::exchange(is_chunk_heartbeat_, false)) source_->Next();
}

}  // namespace

void StartConnection(tcp::socket socket, std::string peer, ServerState* state) {
  if (state->is_plain) {
    std::make_shared<ClientConnection<PlainStream>>(std::move(peer), state, std::move(socket))
        ->Start();
  } else {
    std::make_shared<ClientConnection<TlsStream>>(std::move(peer), state, std::move(socket),
                                                  state->tls)
        ->Start();
  }
}

}  // namespace assay::web
