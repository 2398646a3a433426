#include "tests/attack/hostile.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/openssl_ptr.h"

namespace assay::testing {
namespace {

// Between two acts of one stranger.
constexpr absl::Duration kPace = absl::Milliseconds(20);
// No call of the kernel takes longer, so that a stranger notices the end in time.
constexpr timeval kPatience = {.tv_sec = 0, .tv_usec = 200'000};
constexpr absl::string_view kHttp1 = "\x08http/1.1";
constexpr absl::string_view kHttp2 = "\x02h2";

using SslPtr = std::unique_ptr<SSL, OpenSslFree<SSL_free>>;

sockaddr_in Resolve(const std::string& address) {
  const size_t colon = address.rfind(':');
  CHECK(colon != std::string::npos) << "address=" << address;
  sockaddr_in result{};
  result.sin_family = AF_INET;
  uint32_t port = 0;
  CHECK(absl::SimpleAtoi(address.substr(colon + 1), &port));
  result.sin_port = htons(static_cast<uint16_t>(port));
  CHECK(inet_pton(AF_INET, address.substr(0, colon).c_str(), &result.sin_addr) == 1);
  return result;
}

// From one of a few addresses, none of which is that of the clients who are known.
UniqueFd ConnectTcp(const sockaddr_in& address) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return fd;
  static std::atomic<uint32_t> turn = 0;
  constexpr uint32_t kSources = 4;
  sockaddr_in source{};
  source.sin_family = AF_INET;
  source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + turn++ % kSources);  // 127.0.0.2 to 5
  const int on = 1;  // the port is chosen with the connection, of which there may be many
  setsockopt(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&source), sizeof(source)) != 0)
    return UniqueFd();
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return UniqueFd();
  return fd;
}

// One for all: it has no certificate and believes every server.
SSL_CTX* Context() {
  static SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  return context;
}

SslPtr NewSsl(absl::string_view protocol) {
  SslPtr ssl(SSL_new(Context()));
  CHECK(SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>(protocol.data()),
                            static_cast<unsigned int>(protocol.size())) == 0);
  return ssl;
}

// One connection of a stranger, over which it sends what it likes.
class Line {
 public:
  explicit Line(UniqueFd fd) : fd_(std::move(fd)) {}

  bool is_open() const { return fd_.is_open(); }

  // The client's side of a handshake, as far as it can see.
  bool StartTls(absl::string_view protocol, Bell* bell) {
    ssl_ = NewSsl(protocol);
    SSL_set_fd(ssl_.get(), fd_.get());
    for (;;) {
      const int result = SSL_connect(ssl_.get());
      if (result == 1) return true;
      if (!IsLater(result) || bell->Wait(absl::ZeroDuration())) return false;
    }
  }

  // False if the other side has ended the connection, or the bell rings.
  bool Send(absl::string_view bytes, Bell* bell) {
    while (!bytes.empty()) {
      const ssize_t n = ssl_ == nullptr ? SendPlain(bytes) : SendTls(bytes);
      if (n < 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
      if (n == 0 && bell->Wait(absl::ZeroDuration())) return false;
    }
    return true;
  }

  // Reads and forgets what has come. False if the other side has ended the connection.
  bool Drain() {
    char bytes[4096];
    for (;;) {
      const ssize_t n = recv(fd_.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
      if (n > 0) continue;
      return n < 0 && (errno == EAGAIN || errno == EINTR);
    }
  }

 private:
  bool IsLater(int result) const {
    const int error = SSL_get_error(ssl_.get(), result);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  }
  // Bytes sent; 0: none yet; negative: never.
  ssize_t SendPlain(absl::string_view bytes) {
    const ssize_t n = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : n;
  }
  ssize_t SendTls(absl::string_view bytes) {
    const int n = SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
    return n <= 0 && IsLater(n) ? 0 : n <= 0 ? -1 : n;
  }

  const UniqueFd fd_;
  SslPtr ssl_;
};

// ------------------------------------------------------------------------------------ what is sent

// The first half of a real client's greeting.
std::string HalfGreeting() {
  const SslPtr ssl = NewSsl(kHttp2);
  BIO* const input = BIO_new(BIO_s_mem());
  BIO* const output = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl.get(), input, output);
  SSL_connect(ssl.get());
  std::string greeting(4096, '\0');
  const int size = BIO_read(output, greeting.data(), static_cast<int>(greeting.size()));
  CHECK(size > 1);
  return greeting.substr(0, static_cast<size_t>(size) / 2);
}

// A frame of HTTP/2 (RFC 9113, section 4.1) of stream 1, or of the connection for SETTINGS.
std::string Frame(uint8_t type, absl::string_view payload) {
  constexpr uint8_t kSettings = 4;
  std::string frame;
  for (const int shift : {16, 8, 0})
    frame.push_back(static_cast<char>((payload.size() >> shift) & 0xff));
  frame.push_back(static_cast<char>(type));
  frame.push_back('\0');  // no flag, so the header block does not end
  frame.append(3, '\0');
  frame.push_back(type == kSettings ? '\0' : '\x01');
  frame.append(payload.data(), payload.size());
  return frame;
}

// The preface, and a header whose value is announced with 1 GiB (RFC 7541, sections 5.1 and 6.2.2).
std::string EndlessHeader() {
  constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  constexpr absl::string_view kLiteralWithoutIndex("\x00", 1);
  constexpr absl::string_view kOneGibibyte = "\x7f\x81\xff\xff\xff\x03";
  return absl::StrCat(kPreface, Frame(4, ""),
                      Frame(1, absl::StrCat(kLiteralWithoutIndex, "\x05x-aaa", kOneGibibyte,
                                            std::string(1000, 'a'))));
}

// More of it, in frames as long as they may be unless the peer allows more.
std::string Continuations() {
  constexpr size_t kFrameBytesMax = 16384;
  const std::string frame = Frame(9, std::string(kFrameBytesMax, 'a'));
  return absl::StrCat(frame, frame, frame, frame);
}

std::string SlowRequest() {
  return "POST /v1/worker-certificate/w0 HTTP/1.1\r\nHost: assay\r\nContent-Length: "
         "1000000000\r\nX-Slow: ";
}

std::string WrongToken() {
  constexpr absl::string_view kBody = "{\"token\": \"assay_\", \"csr_pem\": \"-----BEGIN\"}";
  return absl::StrCat(
      "POST /v1/access-certificate HTTP/1.1\r\nHost: assay\r\nAuthorization: Bearer assay_",
      std::string(32, 'b'), "\r\nContent-Length: ", kBody.size(), "\r\n\r\n", kBody);
}

// Sent after `opening`, again and again, until the other side has had enough.
struct Course {
  absl::string_view protocol;  // of TLS; empty: no TLS
  std::string opening;
  std::string piece;  // empty: silence
};

Course CourseOf(Malice malice) {
  switch (malice) {
    case Malice::kEndlessHeader:
      return {kHttp2, EndlessHeader(), Continuations()};
    case Malice::kHalfHandshake:
      return {"", HalfGreeting(), ""};
    case Malice::kSlowRequest:
      return {kHttp1, SlowRequest(), "a"};
    case Malice::kWrongToken:
      return {kHttp1, WrongToken(), WrongToken()};
    case Malice::kDisguise:
      return {kHttp1, EndlessHeader(), Continuations()};
    case Malice::kGarbage:
      return {"", std::string(100, '\xff'), std::string(1000, '\x16')};
    case Malice::kConnectAndClose:
      return {"", "", ""};
  }
  LOG(FATAL) << "no such malice";
  return {};
}

}  // namespace

// ------------------------------------------------------------------------------------------- crowd

void Bell::Ring() {
  MutexLock lock(&mutex_);
  has_rung_ = true;
  changed_.NotifyAll();
}

bool Bell::Wait(absl::Duration duration) {
  const absl::Time end = absl::Now() + duration;
  MutexLock lock(&mutex_);
  while (!has_rung_ && absl::Now() < end)
    changed_.WaitFor(&mutex_, absl::ToChronoNanoseconds(end - absl::Now()));
  return has_rung_;
}

Crowd::Crowd(const std::string& address, int count) : address_(address) {
  // The worst is done by two at once.
  constexpr Malice kMalices[] = {Malice::kEndlessHeader, Malice::kEndlessHeader,
                                 Malice::kHalfHandshake, Malice::kSlowRequest,
                                 Malice::kWrongToken,    Malice::kDisguise,
                                 Malice::kGarbage,       Malice::kConnectAndClose};
  CHECK(std::signal(SIGPIPE, SIG_IGN) != SIG_ERR);  // TLS writes to connections that have ended
  for (int i = 0; i < count; ++i) {
    const Malice malice = kMalices[static_cast<size_t>(i) % std::size(kMalices)];
    threads_.emplace_back([this, malice] { Run(malice); });
  }
}

Crowd::~Crowd() {
  Leave();
}

Crowd::Tally Crowd::Leave() {
  bell_.Ring();
  for (std::thread& thread : threads_)
    thread.join();
  threads_.clear();
  return {.connections = connections_, .turned_away = turned_away_, .sent_bytes = sent_bytes_};
}

void Crowd::Run(Malice malice) {
  // Strangers compute on machines of their own. Here they share one with those whom they attack,
  // so they take what these leave over. Nice 19 is not that: two hundred such threads outweigh one.
  const sched_param none{};
  CHECK(sched_setscheduler(0, SCHED_IDLE, &none) == 0);  // on Linux, of this thread
  const sockaddr_in address = Resolve(address_);
  const Course course = CourseOf(malice);
  do {
    Line line(ConnectTcp(address));
    if (!line.is_open()) {
      ++turned_away_;
      continue;
    }
    ++connections_;
    if (malice == Malice::kConnectAndClose) continue;
    if (!course.protocol.empty() && !line.StartTls(course.protocol, &bell_)) {
      ++turned_away_;
      continue;
    }
    bool is_welcome = line.Send(course.opening, &bell_);
    for (; is_welcome && !bell_.Wait(kPace); sent_bytes_ += std::ssize(course.piece))
      is_welcome = line.Send(course.piece, &bell_) && line.Drain();
    if (!is_welcome) ++turned_away_;
  } while (!bell_.Wait(kPace));
}

std::vector<UniqueFd> ConnectSilently(const std::string& address, int count) {
  const sockaddr_in resolved = Resolve(address);
  std::vector<UniqueFd> connections;
  for (int i = 0; i < count; ++i) {
    UniqueFd fd = ConnectTcp(resolved);
    if (!fd.is_open()) break;
    connections.push_back(std::move(fd));
  }
  return connections;
}

std::vector<UniqueFd> ConnectSilentlyUnix(const std::string& path, int count) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  CHECK(path.size() < sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  std::vector<UniqueFd> connections;
  // The queue of those who wait to be accepted may be full for a moment.
  constexpr int kFailuresMax = 5;
  int failure_count = 0;
  while (std::ssize(connections) < count && failure_count < kFailuresMax) {
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      connections.push_back(std::move(fd));
    } else {
      ++failure_count;
    }
  }
  return connections;
}

}  // namespace assay::testing
