#include "worker/comm/rendezvous_server.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/secret.h"
#include "common/status.h"
#include "worker/comm/collective.h"
#include "worker/comm/handshake.h"
#include "worker/comm/keys.h"
#include "worker/comm/rendezvous_frame.h"
#include "worker/comm/socket.h"

namespace assay::comm {
namespace {

constexpr absl::Duration kJoinPatience = absl::Seconds(10);
constexpr absl::Duration kTurnLongest = absl::Seconds(1);
constexpr size_t kStrangersMax = 64;         // connected and not yet joined
constexpr int kAcceptsPerTurn = 64;          // between looking after those that are there
constexpr size_t kKeysMax = 65536;           // in the store
constexpr size_t kWaitingGetsMax = 65536;    // of all ranks together
constexpr size_t kUnsentBytesMax = 8 << 20;  // to one rank that does not read
constexpr size_t kServerReadBytes = 64 * 1024;

struct Connection {
  UniqueFd fd;
  std::string address;
  MonoTime join_deadline;
  FrameReader reader{kHelloBytesMax};
  std::optional<Handshake> handshake;  // once it has said hello, until it has joined
  std::optional<FrameMarks> marks;     // of what it is sent, once it has joined
  std::string unsent;
  int rank = -1;  // once joined
  std::string end = "closed its connection to the rendezvous: its process ended";
  bool is_leaving = false;
  bool is_closing = false;  // to be removed
};

struct WaitingGet {
  Connection* connection = nullptr;
  uint32_t id = 0;
  std::string key;
};

enum class Presence { kExpected, kHere, kLeft, kLost };

class TcpServer final : public RendezvousServer {
 public:
  TcpServer(const RendezvousServerOptions& options, const Clock* clock, UniqueFd listener,
            UniqueFd wake)
      : options_(options),
        clock_(clock),
        listener_(std::move(listener)),
        wake_(std::move(wake)),
        address_(LocalAddress(listener_.get())),
        presence_(static_cast<size_t>(options.world_size), Presence::kExpected),
        thread_([this] { Serve(); }) {}

  ~TcpServer() override {
    {
      MutexLock lock(&mutex_);
      is_stopping_ = true;
    }
    const uint64_t one = 1;
    CHECK(write(wake_.get(), &one, sizeof one) == sizeof one) << "errno=" << errno;
    thread_.join();
  }

  const std::string& address() const override { return address_; }

  absl::Status WaitUntilAllLeft(MonoTime deadline) override {
    MutexLock lock(&mutex_);
    while (true) {
      if (!loss_.empty()) return absl::UnavailableError(loss_);
      std::vector<size_t> missing;
      for (size_t rank = 0; rank < presence_.size(); ++rank) {
        if (presence_[rank] != Presence::kLeft) missing.push_back(rank);
      }
      if (missing.empty()) return absl::OkStatus();
      const absl::Duration left = deadline - clock_->Mono();
      if (left <= absl::ZeroDuration()) {
        return absl::DeadlineExceededError(
            absl::StrFormat("rendezvous at %s: these ranks have not left before the deadline: %s",
                            address_, absl::StrJoin(missing, ", ")));
      }
      changed_.WaitFor(&mutex_, absl::ToChronoNanoseconds(std::min(left, kTurnLongest)));
    }
  }

 private:
  void Serve() {
    while (!IsStopping()) {
      std::vector<pollfd> polled = PollList();
      poll(polled.data(), polled.size(), static_cast<int>(absl::ToInt64Milliseconds(kTurnLongest)));
      for (size_t i = 0; i < connections_.size(); ++i) {
        const pollfd& entry = polled[i + 2];
        if ((entry.revents & POLLOUT) != 0) Flush(connections_[i].get());
        if ((entry.revents & (POLLIN | POLLHUP | POLLERR)) != 0) ReadFrom(connections_[i].get());
        DropSlowStranger(connections_[i].get());
      }
      if ((polled[1].revents & POLLIN) != 0) Accept();
      RemoveClosed();
    }
    // Closing only now, so that a rank that sees the end of its connection can rely on it.
    connections_.clear();
  }

  bool IsStopping() {
    MutexLock lock(&mutex_);
    return is_stopping_;
  }

  std::vector<pollfd> PollList() const {
    std::vector<pollfd> polled;
    polled.push_back({.fd = wake_.get(), .events = POLLIN, .revents = 0});
    polled.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
    for (const std::unique_ptr<Connection>& connection : connections_) {
      const bool has_unsent = !connection->unsent.empty();
      const int events = has_unsent ? POLLIN | POLLOUT : POLLIN;
      polled.push_back(
          {.fd = connection->fd.get(), .events = static_cast<int16_t>(events), .revents = 0});
    }
    return polled;
  }

  void Accept() {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      UniqueFd fd = AcceptFrom(listener_.get());
      if (!fd.is_open()) return;
      MakeRoomForStranger();
      auto connection = std::make_unique<Connection>();
      connection->address = PeerAddress(fd.get());
      connection->fd = std::move(fd);
      connection->join_deadline = clock_->Mono() + kJoinPatience;
      connections_.push_back(std::move(connection));
    }
  }

  // Connections are in the order of their arrival.
  void MakeRoomForStranger() {
    const auto is_stranger = [](const std::unique_ptr<Connection>& c) {
      return c->rank < 0 && !c->is_closing;
    };
    const auto count = std::count_if(connections_.begin(), connections_.end(), is_stranger);
    if (static_cast<size_t>(count) < kStrangersMax) return;
    const auto oldest = std::find_if(connections_.begin(), connections_.end(), is_stranger);
    LOG(WARNING) << "rendezvous: too many strangers, dropped address=" << (*oldest)->address;
    (*oldest)->is_closing = true;
  }

  void DropSlowStranger(Connection* connection) {
    if (connection->rank >= 0 || clock_->Mono() < connection->join_deadline) return;
    LOG(WARNING) << "rendezvous: has not joined, dropped address=" << connection->address;
    connection->is_closing = true;
  }

  void ReadFrom(Connection* connection) {
    std::string bytes(kServerReadBytes, '\0');
    const ssize_t count = recv(connection->fd.get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) {
      connection->is_closing = true;
      return;
    }
    connection->reader.Add(absl::string_view(bytes.data(), static_cast<size_t>(count)));
    while (!connection->is_closing) {
      absl::StatusOr<std::optional<Frame>> frame = connection->reader.Next();
      if (!frame.ok()) {
        LOG(WARNING) << "rendezvous: dropped address=" << connection->address
                     << " status=" << Quoted(frame.status());
        connection->end = std::string(frame.status().message());
        connection->is_closing = true;
        return;
      }
      if (!frame->has_value()) return;
      Handle(connection, **frame);
    }
  }

  void Handle(Connection* connection, const Frame& frame) {
    if (connection->rank < 0) {
      HandleStranger(connection, frame);
    } else if (frame.type == FrameType::kSet) {
      HandleSet(connection, frame);
    } else if (frame.type == FrameType::kGet) {
      HandleGet(connection, frame);
    } else if (frame.type == FrameType::kBye) {
      connection->is_leaving = true;
      Reply(connection, Frame{.type = FrameType::kDone, .id = frame.id});
      SetPresence(connection->rank, Presence::kLeft, "");
    } else {
      LOG(WARNING) << "rendezvous: unknown frame type=" << static_cast<int>(frame.type)
                   << " rank=" << connection->rank;
      connection->is_closing = true;
    }
  }

  void HandleStranger(Connection* connection, const Frame& frame) {
    const absl::Status verdict = connection->handshake.has_value() ? HandleAnswer(connection, frame)
                                                                   : HandleHello(connection, frame);
    if (verdict.ok()) return;
    LOG(WARNING) << "rendezvous: refused address=" << connection->address
                 << " status=" << Quoted(verdict);
    Reply(connection, Frame{.type = FrameType::kRefuse,
                            .id = static_cast<uint32_t>(verdict.code()),
                            .value = std::string(verdict.message())});
    connection->is_closing = true;
  }

  absl::Status HandleHello(Connection* connection, const Frame& hello) {
    if (hello.type != FrameType::kHello || hello.value != kRendezvousProtocol ||
        hello.key.size() != kNonceBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("this server speaks \"", kRendezvousProtocol, "\""));
    }
    connection->handshake = Handshake{.token = options_.token,
                                      .run = options_.run,
                                      .world_size = hello.id,
                                      .rank = hello.rank,
                                      .rank_nonce = hello.key,
                                      .server_nonce = RandomBytes(kNonceBytes)};
    Reply(connection, Frame{.type = FrameType::kChallenge,
                            .key = connection->handshake->server_nonce,
                            .value = connection->handshake->ServerProof()});
    return absl::OkStatus();
  }

  absl::Status HandleAnswer(Connection* connection, const Frame& answer) {
    const Handshake& handshake = *connection->handshake;
    if (answer.type != FrameType::kAnswer || !SameBytes(answer.value, handshake.RankProof())) {
      return absl::PermissionDeniedError(
          "wrong token: give all ranks the token that rank 0's run spec has");
    }
    connection->marks = FrameMarks(handshake.KeyOfServer());
    RETURN_IF_ERROR(Admit(handshake));
    connection->reader.ExpectMarks(FrameMarks(handshake.KeyOfRank()));
    connection->rank = static_cast<int>(handshake.rank);
    connection->handshake.reset();
    SetPresence(connection->rank, Presence::kHere, "");
    Reply(connection, Frame{.type = FrameType::kWelcome});
    for (const Frame& loss : losses_)
      Reply(connection, loss);
    return absl::OkStatus();
  }

  absl::Status Admit(const Handshake& joining) {
    if (joining.world_size != static_cast<uint32_t>(options_.world_size) ||
        joining.rank >= static_cast<uint32_t>(options_.world_size)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("this world has %d ranks; rank %d of %d cannot join it",
                          options_.world_size, joining.rank, joining.world_size));
    }
    MutexLock lock(&mutex_);
    if (presence_[joining.rank] == Presence::kExpected) return absl::OkStatus();
    return absl::AlreadyExistsError(
        absl::StrFormat("rank %d has joined before; start each rank once", joining.rank));
  }

  void HandleSet(Connection* connection, const Frame& frame) {
    const auto [entry, is_new] = store_.try_emplace(frame.key, frame.value);
    if (!is_new && entry->second != frame.value) {
      ReplyError(connection, frame.id,
                 absl::AlreadyExistsError(
                     absl::StrCat("key \"", frame.key, "\" is set to another value")));
      return;
    }
    if (store_.size() > kKeysMax) {
      store_.erase(entry);
      ReplyError(connection, frame.id,
                 absl::ResourceExhaustedError(absl::StrCat("more than ", kKeysMax, " keys")));
      return;
    }
    Reply(connection, Frame{.type = FrameType::kDone, .id = frame.id});
    AnswerWaitingGets(frame.key, frame.value);
  }

  void AnswerWaitingGets(const std::string& key, const std::string& value) {
    for (const WaitingGet& get : waiting_gets_) {
      if (get.key != key) continue;
      Reply(get.connection, Frame{.type = FrameType::kDone, .id = get.id, .value = value});
    }
    std::erase_if(waiting_gets_, [&](const WaitingGet& get) { return get.key == key; });
  }

  void HandleGet(Connection* connection, const Frame& frame) {
    const auto found = store_.find(frame.key);
    if (found != store_.end()) {
      Reply(connection, Frame{.type = FrameType::kDone, .id = frame.id, .value = found->second});
      return;
    }
    if (waiting_gets_.size() >= kWaitingGetsMax) {
      ReplyError(connection, frame.id,
                 absl::ResourceExhaustedError(
                     absl::StrCat("more than ", kWaitingGetsMax, " requests are waiting")));
      return;
    }
    waiting_gets_.push_back({.connection = connection, .id = frame.id, .key = frame.key});
  }

  static void ReplyError(Connection* connection, uint32_t id, const absl::Status& error) {
    Reply(connection, Frame{.type = FrameType::kError,
                            .id = id,
                            .rank = static_cast<uint32_t>(error.code()),
                            .value = std::string(error.message())});
  }

  static void Reply(Connection* connection, const Frame& frame) {
    FrameMarks* const marks = connection->marks.has_value() ? &*connection->marks : nullptr;
    connection->unsent += EncodeFrame(frame, marks);
    Flush(connection);
    if (connection->unsent.size() > kUnsentBytesMax) connection->is_closing = true;
  }

  static void Flush(Connection* connection) {
    const std::string& unsent = connection->unsent;
    const ssize_t count = send(connection->fd.get(), unsent.data(), unsent.size(), MSG_NOSIGNAL);
    if (count > 0) connection->unsent.erase(0, static_cast<size_t>(count));
    if (count < 0 && errno != EAGAIN && errno != EINTR) connection->is_closing = true;
  }

  void RemoveClosed() {
    // Telling the others may find another connection broken, so this repeats until none is.
    while (true) {
      const auto closed =
          std::find_if(connections_.begin(), connections_.end(),
                       [](const std::unique_ptr<Connection>& c) { return c->is_closing; });
      if (closed == connections_.end()) return;
      const std::unique_ptr<Connection> connection = std::move(*closed);
      connections_.erase(closed);
      std::erase_if(waiting_gets_,
                    [&](const WaitingGet& get) { return get.connection == connection.get(); });
      if (connection->rank >= 0 && !connection->is_leaving) AnnounceLoss(*connection);
    }
  }

  void AnnounceLoss(const Connection& lost) {
    const std::string text =
        absl::StrFormat("rank %d at %s: %s", lost.rank, lost.address, lost.end);
    LOG(WARNING) << "rendezvous: " << text;
    SetPresence(lost.rank, Presence::kLost, text);
    losses_.push_back(
        Frame{.type = FrameType::kLost, .rank = static_cast<uint32_t>(lost.rank), .value = text});
    for (const std::unique_ptr<Connection>& connection : connections_) {
      if (connection->rank >= 0) Reply(connection.get(), losses_.back());
    }
  }

  void SetPresence(int rank, Presence presence, const std::string& loss) {
    MutexLock lock(&mutex_);
    presence_[static_cast<size_t>(rank)] = presence;
    if (loss_.empty()) loss_ = loss;
    changed_.NotifyAll();
  }

  // Constant after construction.
  const RendezvousServerOptions options_;
  const Clock* const clock_;
  const UniqueFd listener_;
  const UniqueFd wake_;
  const std::string address_;

  // Used by the serving thread only.
  std::vector<std::unique_ptr<Connection>> connections_;
  std::map<std::string, std::string> store_;
  std::vector<WaitingGet> waiting_gets_;
  std::vector<Frame> losses_;

  Mutex mutex_;
  CondVar changed_;
  std::vector<Presence> presence_ ABSL_GUARDED_BY(mutex_);
  std::string loss_ ABSL_GUARDED_BY(mutex_);  // of the first lost rank
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

absl::StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::Start(
    const RendezvousServerOptions& options, const Clock* clock) {
  ASSIGN_OR_RETURN(UniqueFd listener, ListenOn(options.address));
  return Start(options, std::move(listener), clock);
}

absl::StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::Start(
    const RendezvousServerOptions& options, UniqueFd listener, const Clock* clock) {
  if (options.token.empty() || options.token.size() > kKeyBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the rendezvous token has %d bytes; 1 to %d are allowed",
                        options.token.size(), kKeyBytesMax));
  }
  if (options.world_size < 1 || options.world_size > kMaxWorldSize) {
    return absl::InvalidArgumentError(absl::StrFormat("a world of %d ranks; 1 to %d are allowed",
                                                      options.world_size, kMaxWorldSize));
  }
  RETURN_IF_ERROR(AdoptListener(listener.get()));
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_open()) return absl::ErrnoToStatus(errno, "eventfd");
  return std::make_unique<TcpServer>(options, clock, std::move(listener), std::move(wake));
}

}  // namespace assay::comm
