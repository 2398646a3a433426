#include "server/gate/gate.h"

#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <list>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"
#include "server/gate/listener.h"
#include "server/gate/readiness.h"
#include "server/gate/relay_pool.h"
#include "server/gate/tls_context.h"
#include "server/gate/visitor_list.h"
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace assay::gate {
namespace {

// When descriptors have run out, accept fails at once: look again after this long.
constexpr std::chrono::milliseconds kAcceptPause(100);
// Of visitors who leave then, so that there are descriptors again.
constexpr size_t kSentAwayWhenShort = 16;
// Between two looks at what else there is to do.
constexpr int kAcceptsPerTurn = 16;
// A node that vanishes without a word is noticed after 6 s: 2 s of quiet, then 4 probes a second
// apart, of which one must be answered. The kernel does it. A person's line may pause for longer.
constexpr int kNodeQuietS = 2;
constexpr int kNodeProbeS = 1;
constexpr int kNodeProbes = 4;
constexpr unsigned kNodeAckMs = 5500;  // where bytes are under way; rounded up to the next probe

void WatchNode(int fd) {
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kNodeQuietS, sizeof(kNodeQuietS));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kNodeProbeS, sizeof(kNodeProbeS));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kNodeProbes, sizeof(kNodeProbes));
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kNodeAckMs, sizeof(kNodeAckMs));
}

// Handshakes of strangers wait for the daemon's other work, not the other way round.
constexpr int kDoorNice = 5;

}  // namespace

// The thread that accepts, and meets strangers.
class Gate::Door {
 public:
  Door(Options options, std::optional<TlsContext> tls)
      : options_(std::move(options)),
        tls_(std::move(tls)),
        pool_(
            [this](const auth::Evidence& evidence) { return options_.identify(evidence).status(); },
            options_.message_bytes_max),
        visitors_(VisitorList::DefaultLimits()),
        pause_(context_),
        host_{.context = &context_,
              .admit = [this](Stream* stream,
                              const auth::Evidence& evidence) { return Admit(stream, evidence); },
              .on_refusal = options_.on_refusal,
              .ask = options_.on_question,
              .patience = options_.visit_max} {}
  ~Door() { Stop(); }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  absl::Status Listen();
  void Start();
  void Stop();
  const std::string& tcp_address() const { return tcp_address_; }

 private:
  struct Listener {
    Listener(boost::asio::io_context* context, UniqueFd the_fd, bool is_tls_spoken)
        : fd(std::move(the_fd)), readiness(context, fd.get()), is_tls(is_tls_spoken) {}
    UniqueFd fd;
    Readiness readiness;
    const bool is_tls;
  };

  void Await(Listener* listener);
  void Accept(Listener* listener);
  void MeetTls(UniqueFd fd, const sockaddr_storage& address);
  void MeetUnix(UniqueFd fd);
  // Hands `stream` to gRPC if that evidence is enough.
  absl::Status Admit(Stream* stream, const auth::Evidence& evidence);

  const Options options_;
  const std::optional<TlsContext> tls_;
  std::string tcp_address_;
  RelayPool pool_;
  boost::asio::io_context context_{1};
  std::list<Listener> listeners_;
  VisitorList visitors_;
  boost::asio::steady_timer pause_;
  const Visitor::Host host_;
  std::thread thread_;
};

void Gate::Door::Stop() {
  if (!thread_.joinable()) return;
  boost::asio::post(context_, [this] {
    listeners_.clear();
    visitors_.CloseAll();
    context_.stop();
  });
  thread_.join();
  if (!options_.unix_socket_path.empty()) unlink(options_.unix_socket_path.c_str());
}

absl::Status Gate::Door::Listen() {
  if (!options_.tcp_address.empty()) {
    ASSIGN_OR_RETURN(TcpListeners tcp, ListenTcp(options_.tcp_address));
    tcp_address_ = tcp.address;
    for (UniqueFd& fd : tcp.sockets)
      listeners_.emplace_back(&context_, std::move(fd), /*is_tls_spoken=*/true);
  }
  if (options_.unix_socket_path.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(UniqueFd fd, ListenUnix(options_.unix_socket_path, options_.unix_socket_mode));
  listeners_.emplace_back(&context_, std::move(fd), /*is_tls_spoken=*/false);
  return absl::OkStatus();
}

void Gate::Door::Start() {
  for (Listener& listener : listeners_)
    Await(&listener);
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "gate");
    // On Linux this is the thread's own.
    if (setpriority(PRIO_PROCESS, 0, kDoorNice) != 0) LOG(WARNING) << "gate: cannot be nice";
    const auto work = boost::asio::make_work_guard(context_);
    context_.run();
  });
}

void Gate::Door::Await(Listener* listener) {
  listener->readiness.WaitRead([this, listener](boost::system::error_code error) {
    if (!error) Accept(listener);
  });
}

void Gate::Door::Accept(Listener* listener) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    UniqueFd fd(accept4(listener->fd.get(), reinterpret_cast<sockaddr*>(&address), &size,
                        SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.is_open()) {
      if (listener->is_tls)
        MeetTls(std::move(fd), address);
      else
        MeetUnix(std::move(fd));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Await(listener);
    LOG(WARNING) << "gate: cannot accept, errno=" << errno
                 << "; sends strangers away and tries again visitors=" << visitors_.size();
    visitors_.CloseOldest(kSentAwayWhenShort);
    // Each listener that fails cancels the pause of another, which then looks again as well.
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this, listener](boost::system::error_code) { Accept(listener); });
    return;
  }
  boost::asio::post(context_, [this, listener] { Accept(listener); });
}

void Gate::Door::MeetTls(UniqueFd fd, const sockaddr_storage& address) {
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  SslPtr ssl = tls_->NewConnection();
  if (ssl == nullptr) return;
  visitors_
      .Add(&host_, Stream(std::move(fd), std::move(ssl)), AddressGroup(address),
           AddressText(address))
      ->StartTls();
}

void Gate::Door::MeetUnix(UniqueFd fd) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    LOG(WARNING) << "gate: no peer credentials, errno=" << errno;
    return;
  }
  const std::string user = absl::StrCat("uid ", credentials.uid);
  visitors_.Add(&host_, Stream(std::move(fd)), user, absl::StrCat(user, " pid ", credentials.pid))
      ->StartKnown({.user = credentials.uid});
}

absl::Status Gate::Door::Admit(Stream* stream, const auth::Evidence& evidence) {
  ASSIGN_OR_RETURN(const auth::Identity identity, options_.identify(evidence));
  int pair[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0)
    return absl::ResourceExhaustedError("the coordinator is out of descriptors: try again later");
  UniqueFd ours(pair[0]);
  ASSIGN_OR_RETURN(UniqueFd theirs,
                   options_.connections->Bind(UniqueFd(pair[1]), evidence,
                                              identity.role == auth::Role::kOperator));
  if (identity.role == auth::Role::kWorker) WatchNode(stream->fd());
  const int number = theirs.get();
  pool_.Add(
      {.client = std::move(*stream),
       .server = Stream(std::move(ours)),
       .evidence = evidence,
       .peer = ConnectionTable::PeerOf(evidence),
       .on_over = [connections = options_.connections, number] { connections->Release(number); }});
  options_.on_connection(theirs.Release());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Gate>> Gate::Start(Options options) {
  std::optional<TlsContext> tls;
  if (!options.tcp_address.empty()) {
    ASSIGN_OR_RETURN(tls, TlsContext::Make(options.server_certificate, options.ca_pem));
  }
  auto door = std::make_unique<Door>(std::move(options), std::move(tls));
  RETURN_IF_ERROR(door->Listen());
  door->Start();
  return std::unique_ptr<Gate>(new Gate(std::move(door)));
}

Gate::Gate(std::unique_ptr<Door> door) : door_(std::move(door)) {}

Gate::~Gate() = default;

void Gate::StopListening() {
  door_->Stop();
}

const std::string& Gate::tcp_address() const {
  return door_->tcp_address();
}

}  // namespace assay::gate
