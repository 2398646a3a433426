#include "worker/agent/reader_gate.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/log.h"
#include "common/process.h"
#include "common/status.h"
#include "worker/agent/gate.h"

namespace assay::agent {
namespace {

constexpr absl::Duration kClosePatience = absl::Seconds(60);

}  // namespace

absl::StatusOr<ReaderGate> ReaderGate::Close(const ReaderGateOptions& options, const Clock* clock) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return absl::ErrnoToStatus(errno, "socketpair");
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  SpawnOptions spawn{
      .argv = {options.program, kGateMode, absl::StrCat(getpid()), options.drop_caches_path,
               std::string(options.are_copies ? kGateOfCopies : kGateOfDataset)},
      .inherited_fd = theirs.get()};
  spawn.argv.insert(spawn.argv.end(), options.directories.begin(), options.directories.end());
  ASSIGN_OR_RETURN(const ProcessId process, Spawn(spawn));
  UniqueFd process_fd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  if (!process_fd.is_open()) return absl::ErrnoToStatus(errno, "pidfd_open");
  theirs.Reset();
  ReaderGate gate(process.pid, std::move(process_fd), std::move(ours), clock);
  pollfd entry{gate.fd(), POLLIN, 0};
  const int ready = poll(&entry, 1, static_cast<int>(absl::ToInt64Milliseconds(kClosePatience)));
  if (ready <= 0)
    return absl::UnavailableError(
        absl::StrCat("it was not ready within ", absl::FormatDuration(kClosePatience)));
  const std::string answer = gate.Receive().value_or("its process has ended");
  absl::string_view why = answer;
  absl::ConsumePrefix(&why, kGateRefused);
  if (why != kGateClosed) return absl::UnavailableError(why);
  gate.heard_at_ = clock->Mono();
  return gate;
}

ReaderGate::~ReaderGate() {
  Open();
}

void ReaderGate::Open() {
  socket_.Reset();
  if (!process_.is_open()) return;
  syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
  // One that hangs in the kernel is reaped with all that a step leaves.
  siginfo_t info{};
  waitid(P_PIDFD, static_cast<id_t>(process_.get()), &info, WEXITED | WNOHANG);
  process_.Reset();
}

// nullopt: nothing is there; fd() is -1 if nothing will be.
std::optional<std::string> ReaderGate::Receive() {
  std::string message(kGateMessageBytesMax, '\0');
  const ssize_t count = recv(socket_.get(), message.data(), message.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (count <= 0) {
    socket_.Reset();
    return std::nullopt;
  }
  message.resize(static_cast<size_t>(count));
  return message;
}

void ReaderGate::Look() {
  while (fd() >= 0) {
    const std::optional<std::string> message = Receive();
    if (!message.has_value()) break;
    heard_at_ = clock_->Mono();
    if (*message == kGateBeat) continue;
    absl::StatusOr<GateRecord> record = ParseGateRecord(*message);
    if (!record.ok())
      return Lose(absl::StrCat("it said what is not understood: ", record.status().message()));
    record_ = *std::move(record);
    return Open();
  }
  if (record_.has_value() || !why_lost_.empty()) return;
  if (fd() < 0) return Lose("its process has ended");
  const absl::Duration silence = clock_->Mono() - heard_at_;
  if (silence > kSilenceMax)
    Lose(absl::StrCat("it had said nothing for ",
                      absl::FormatDuration(absl::Trunc(silence, absl::Milliseconds(1)))));
}

void ReaderGate::Await() {
  Look();
  pollfd entry{fd(), POLLIN, 0};
  if (fd() >= 0) poll(&entry, 1, static_cast<int>(absl::ToInt64Milliseconds(kSilenceMax)));
  Look();
}

void ReaderGate::Lose(std::string why) {
  LOG(WARNING) << "the gate is open, because " << why;
  why_lost_ = std::move(why);
  Open();
}

}  // namespace assay::agent
