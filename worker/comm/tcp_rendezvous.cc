#include "worker/comm/tcp_rendezvous.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/secret.h"
#include "common/status.h"
#include "worker/comm/handshake.h"
#include "worker/comm/keys.h"
#include "worker/comm/rendezvous_frame.h"
#include "worker/comm/socket.h"

namespace assay::comm {
namespace {

constexpr absl::Duration kRetryFirst = absl::Milliseconds(5);
constexpr absl::Duration kRetryLongest = absl::Milliseconds(250);
constexpr absl::Duration kPollLongest = absl::Seconds(1);
// Where a listener's queue is full the kernel asks again at growing intervals, up to a minute:
// better to begin anew.
constexpr absl::Duration kConnectLongest = absl::Seconds(10);
constexpr size_t kReadBytes = 64 * 1024;
constexpr size_t kRefusalBytesShown = 120;  // of what a stranger says

absl::Status WaitFor(int fd, int16_t events, const Clock& clock, MonoTime deadline) {
  while (true) {
    pollfd waiting = {.fd = fd, .events = events, .revents = 0};
    if (poll(&waiting, 1, PollTimeoutMs(clock, deadline, kPollLongest)) > 0) {
      return absl::OkStatus();
    }
    if (clock.Mono() >= deadline) return absl::DeadlineExceededError("no answer in time");
  }
}

absl::Status SendAll(int fd, absl::string_view bytes, const Clock& clock, MonoTime deadline) {
  while (!bytes.empty()) {
    const ssize_t count = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN) {
      RETURN_IF_ERROR(WaitFor(fd, POLLOUT, clock, deadline));
    } else if (errno != EINTR) {
      return absl::UnavailableError(absl::ErrnoToStatus(errno, "send").message());
    }
  }
  return absl::OkStatus();
}

// What arrived, without waiting; empty if nothing. UNAVAILABLE at the end of the connection.
absl::StatusOr<std::string> ReceiveSome(int fd) {
  std::string bytes(kReadBytes, '\0');
  const ssize_t count = recv(fd, bytes.data(), bytes.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return std::string();
  if (count < 0) return absl::UnavailableError(absl::ErrnoToStatus(errno, "recv").message());
  if (count == 0) return absl::UnavailableError("the connection was closed");
  bytes.resize(static_cast<size_t>(count));
  return bytes;
}

// A connection that the server has let in. Frames that followed the welcome are in `reader`.
struct Joined {
  UniqueFd fd;
  FrameReader reader{kHelloBytesMax};
  std::optional<FrameMarks> marks;  // of what is sent, once the handshake is over
};

// The next frame of the handshake.
absl::StatusOr<Frame> ReadFrame(Joined* connection, const Clock& clock, MonoTime deadline) {
  while (true) {
    ASSIGN_OR_RETURN(std::optional<Frame> frame, connection->reader.Next());
    if (frame.has_value()) return *std::move(frame);
    RETURN_IF_ERROR(WaitFor(connection->fd.get(), POLLIN, clock, deadline));
    ASSIGN_OR_RETURN(const std::string bytes, ReceiveSome(connection->fd.get()));
    connection->reader.Add(bytes);
  }
}

// What a refusal says. Before the handshake's end anybody may have written it.
absl::Status RefusalIn(const Frame& frame, bool is_proven) {
  const auto code = static_cast<absl::StatusCode>(frame.id);
  if (is_proven && frame.type == FrameType::kRefuse && code != absl::StatusCode::kOk)
    return absl::Status(code, frame.value);
  return absl::UnauthenticatedError(
      absl::StrCat("who listens there is not rank 0 of this run, or speaks another version: \"",
                   absl::CHexEscape(frame.value.substr(0, kRefusalBytesShown)), "\""));
}

// Convinces the server on `fd` and is convinced by it. UNAVAILABLE and DEADLINE_EXCEEDED: no
// answer. Any other error is final.
absl::StatusOr<Joined> ShakeHands(UniqueFd fd, const JoinOptions& options, const Clock& clock,
                                  MonoTime deadline) {
  Joined joined{.fd = std::move(fd)};
  Handshake handshake{.token = options.token,
                      .run = options.run,
                      .world_size = static_cast<uint32_t>(options.world_size),
                      .rank = static_cast<uint32_t>(options.rank),
                      .rank_nonce = RandomBytes(kNonceBytes)};
  const auto send = [&](const Frame& frame) {
    return SendAll(joined.fd.get(), EncodeFrame(frame, nullptr), clock, deadline);
  };
  RETURN_IF_ERROR(send({.type = FrameType::kHello,
                        .id = handshake.world_size,
                        .rank = handshake.rank,
                        .key = handshake.rank_nonce,
                        .value = std::string(kRendezvousProtocol)}));
  ASSIGN_OR_RETURN(const Frame challenge, ReadFrame(&joined, clock, deadline));
  if (challenge.type != FrameType::kChallenge || challenge.key.size() != kNonceBytes)
    return RefusalIn(challenge, /*is_proven=*/false);
  handshake.server_nonce = challenge.key;
  if (!SameBytes(challenge.value, handshake.ServerProof())) {
    return absl::UnauthenticatedError(
        "who listens there does not know this run's token: it is not rank 0 of this run, or the "
        "two run specs differ in rendezvous_token or run");
  }
  RETURN_IF_ERROR(send({.type = FrameType::kAnswer, .value = handshake.RankProof()}));
  joined.marks = FrameMarks(handshake.KeyOfRank());
  joined.reader.ExpectMarks(FrameMarks(handshake.KeyOfServer()));
  ASSIGN_OR_RETURN(const Frame verdict, ReadFrame(&joined, clock, deadline));
  if (verdict.type != FrameType::kWelcome) return RefusalIn(verdict, /*is_proven=*/true);
  return joined;
}

// Connects and shakes hands until the server answers yes or no.
absl::StatusOr<Joined> ConnectAndJoin(const JoinOptions& options, const Clock& clock,
                                      MonoTime deadline) {
  absl::Duration pause = kRetryFirst;
  while (true) {
    absl::StatusOr<UniqueFd> fd =
        ConnectTo(options.address, clock, std::min(deadline, clock.Mono() + kConnectLongest));
    absl::StatusOr<Joined> joined =
        fd.ok() ? ShakeHands(*std::move(fd), options, clock, deadline) : fd.status();
    const bool is_silent =
        absl::IsUnavailable(joined.status()) || absl::IsDeadlineExceeded(joined.status());
    if (!is_silent) return joined;
    if (clock.Mono() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          joined.status().message(),
          "; check that rank 0 has started and that its port can be reached from here"));
    }
    // There is no event to wait for: nothing tells us when somebody starts to listen.
    poll(nullptr, 0, PollTimeoutMs(clock, deadline, pause));
    pause = std::min(2 * pause, kRetryLongest);
  }
}

class TcpRendezvous final : public Rendezvous {
 public:
  TcpRendezvous(const JoinOptions& options, std::unique_ptr<RendezvousServer> server,
                const Clock* clock, Joined joined, UniqueFd wake)
      : options_(options),
        server_(std::move(server)),
        clock_(clock),
        fd_(std::move(joined.fd)),
        wake_(std::move(wake)),
        reader_(std::move(joined.reader)),
        marks_(*std::move(joined.marks)),
        thread_([this] { Listen(); }) {}

  ~TcpRendezvous() override {
    {
      MutexLock lock(&mutex_);
      is_stopping_ = true;
    }
    const uint64_t one = 1;
    CHECK(write(wake_.get(), &one, sizeof one) == sizeof one) << "errno=" << errno;
    thread_.join();
  }

  int rank() const override { return options_.rank; }
  int world_size() const override { return options_.world_size; }
  std::string local_host() const override {
    const absl::StatusOr<HostPort> address = ParseHostPort(LocalAddress(fd_.get()));
    return address.ok() ? address->host : "";
  }

  absl::Status Set(absl::string_view key, absl::string_view value, MonoTime deadline) override {
    if (key.size() > kKeyBytesMax || value.size() > kValueBytesMax) {
      return absl::InvalidArgumentError(
          absl::StrFormat("key \"%s\" with %d bytes of value: at most %d and %d bytes are allowed",
                          key.substr(0, kKeyBytesMax), value.size(), kKeyBytesMax, kValueBytesMax));
    }
    return Call(
               Frame{.type = FrameType::kSet, .key = std::string(key), .value = std::string(value)},
               absl::StrCat("to store \"", key, "\""), deadline, std::nullopt)
        .status();
  }

  absl::StatusOr<std::string> Get(absl::string_view key, MonoTime deadline,
                                  absl::FunctionRef<void()> poll) override {
    return StartGet(key, deadline, poll);
  }

  absl::StatusOr<std::string> Get(absl::string_view key, MonoTime deadline) override {
    return StartGet(key, deadline, std::nullopt);
  }

  absl::Status Health() const override {
    if (is_healthy_.load(std::memory_order_acquire)) return absl::OkStatus();
    MutexLock lock(&mutex_);
    return health_;
  }

  absl::Status Leave(MonoTime deadline) override {
    {
      MutexLock lock(&mutex_);
      is_leaving_ = true;
    }
    RETURN_IF_ERROR(
        Call(Frame{.type = FrameType::kBye}, "to leave", deadline, std::nullopt).status());
    if (server_ == nullptr) return absl::OkStatus();
    return server_->WaitUntilAllLeft(deadline);
  }

 private:
  using Poll = std::optional<absl::FunctionRef<void()>>;

  absl::StatusOr<std::string> StartGet(absl::string_view key, MonoTime deadline, Poll poll) {
    if (key.size() > kKeyBytesMax) return absl::InvalidArgumentError("the key is too long");
    return Call(Frame{.type = FrameType::kGet, .key = std::string(key)},
                absl::StrCat("for \"", key, "\""), deadline, poll);
  }

  // Sends `request` and waits for its answer.
  absl::StatusOr<std::string> Call(Frame request, const std::string& purpose, MonoTime deadline,
                                   Poll poll) {
    uint32_t id = 0;
    {
      MutexLock lock(&mutex_);
      RETURN_IF_ERROR(health_);
      id = request.id = next_id_++;
      answers_[id] = std::nullopt;
      RETURN_IF_ERROR(Annotate(SendAll(fd_.get(), EncodeFrame(request, &marks_), *clock_, deadline),
                               absl::StrCat("rendezvous at ", options_.address)));
    }
    while (true) {
      if (poll.has_value()) {
        (*poll)();
        sched_yield();
      }
      MutexLock lock(&mutex_);
      if (answers_[id].has_value()) return TakeAnswer(id);
      absl::Status failure = health_;
      if (failure.ok() && !WaitUntil(deadline, poll.has_value())) {
        failure = absl::DeadlineExceededError(
            absl::StrFormat("rank %d: waited in vain %s at the rendezvous of rank 0 at %s",
                            options_.rank, purpose, options_.address));
      }
      if (failure.ok()) continue;
      answers_.erase(id);
      return failure;
    }
  }

  absl::StatusOr<std::string> TakeAnswer(uint32_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Frame answer = *std::move(answers_[id]);
    answers_.erase(id);
    if (answer.type == FrameType::kDone) return std::move(answer.value);
    return absl::Status(static_cast<absl::StatusCode>(answer.rank), answer.value);
  }

  // False once `deadline` has passed.
  bool WaitUntil(MonoTime deadline, bool is_polling) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const absl::Duration left = deadline - clock_->Mono();
    if (left <= absl::ZeroDuration()) return false;
    if (!is_polling) {
      changed_.WaitFor(&mutex_, absl::ToChronoNanoseconds(std::min(left, kPollLongest)));
    }
    return true;
  }

  // The listening thread: answers, and news of lost ranks.
  void Listen() {
    while (Deliver()) {
      pollfd polled[] = {{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                         {.fd = fd_.get(), .events = POLLIN, .revents = 0}};
      poll(polled, 2, -1);
      if (polled[1].revents == 0) continue;
      const absl::StatusOr<std::string> bytes = ReceiveSome(fd_.get());
      if (!bytes.ok()) {
        Disconnected(bytes.status());
        return;
      }
      reader_.Add(*bytes);
    }
  }

  // Hands out the frames that are complete. False when there is no point in reading on.
  bool Deliver() {
    while (true) {
      const absl::StatusOr<std::optional<Frame>> frame = reader_.Next();
      MutexLock lock(&mutex_);
      if (is_stopping_) return false;
      if (!frame.ok()) {
        Fail(Annotate(frame.status(), absl::StrCat("rendezvous at ", options_.address)));
        return false;
      }
      if (!frame->has_value()) return true;
      if ((*frame)->type == FrameType::kLost) {
        Fail(absl::UnavailableError((*frame)->value));
      } else if (const auto waiting = answers_.find((*frame)->id); waiting != answers_.end()) {
        waiting->second = **frame;
        changed_.NotifyAll();
      }
    }
  }

  void Disconnected(const absl::Status& why) {
    MutexLock lock(&mutex_);
    if (is_stopping_) return;
    if (is_leaving_) {
      // Rank 0 has everything it needs from us: an end in order.
      for (auto& [id, answer] : answers_)
        answer = Frame{.type = FrameType::kDone, .id = id};
      changed_.NotifyAll();
      return;
    }
    Fail(absl::UnavailableError(
        absl::StrFormat("rank 0 at %s ended its rendezvous: its process ended (%s)",
                        options_.address, why.message())));
  }

  void Fail(absl::Status failure) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!health_.ok()) return;
    health_ = std::move(failure);
    is_healthy_.store(false, std::memory_order_release);
    changed_.NotifyAll();
  }

  // Constant after construction.
  const JoinOptions options_;
  const std::unique_ptr<RendezvousServer> server_;  // null except on rank 0
  const Clock* const clock_;
  const UniqueFd fd_;
  const UniqueFd wake_;

  FrameReader reader_;  // used by the listening thread only
  std::atomic<bool> is_healthy_ = true;

  mutable Mutex mutex_;
  CondVar changed_;
  absl::Status health_ ABSL_GUARDED_BY(mutex_);
  FrameMarks marks_ ABSL_GUARDED_BY(mutex_);
  std::map<uint32_t, std::optional<Frame>> answers_ ABSL_GUARDED_BY(mutex_);  // by request
  uint32_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  bool is_leaving_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

absl::StatusOr<std::unique_ptr<Rendezvous>> JoinRendezvous(const JoinOptions& options,
                                                           std::unique_ptr<RendezvousServer> server,
                                                           const Clock* clock, MonoTime deadline) {
  if (options.token.empty() || options.token.size() > kKeyBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the rendezvous token has %d bytes; 1 to %d are allowed",
                        options.token.size(), kKeyBytesMax));
  }
  absl::StatusOr<Joined> joined = ConnectAndJoin(options, *clock, deadline);
  if (!joined.ok()) {
    return Annotate(joined.status(),
                    absl::StrFormat("rank %d of %d cannot join the rendezvous of rank 0 at %s",
                                    options.rank, options.world_size, options.address));
  }
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_open()) return absl::ErrnoToStatus(errno, "eventfd");
  return std::make_unique<TcpRendezvous>(options, std::move(server), clock, *std::move(joined),
                                         std::move(wake));
}

}  // namespace assay::comm
