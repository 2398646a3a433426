#include "worker/agent/entrance.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"

#include "common/json_document.h"
#include "common/log.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::agent {
namespace {

using Json = nlohmann::json;

constexpr size_t kRequestBytesMax = 128 << 10;
constexpr size_t kReplyBytesMax = 4096;
constexpr size_t kNameBytes = 32;
constexpr size_t kCallersMax = 2048;  // ranks of a node, and some that have lost their way
constexpr absl::Duration kRetry = absl::Milliseconds(50);
constexpr char kRefused[] = "refused: ";
constexpr const char* kRankVariables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"};

struct Address {
  sockaddr_un value{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&value); }
};

// In the namespace of such sockets, which belongs to the node's network and not to its files.
Address AddressOf(const std::string& name, int node_rank) {
  const std::string text = absl::StrCat("assay-enter-", name, "-", node_rank);
  Address address;
  address.value.sun_family = AF_UNIX;
  const size_t length = std::min(text.size(), sizeof(address.value.sun_path) - 1);
  std::memcpy(address.value.sun_path + 1, text.data(), length);
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

absl::StatusOr<UniqueFd> MakeSocket(int more) {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | more, 0));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, "socket");
  return fd;
}

absl::StatusOr<uid_t> AccountOfPeer(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return absl::ErrnoToStatus(errno, "SO_PEERCRED");
  return peer.uid;
}

std::optional<Entrant> ParseEntrant(absl::string_view text) {
  const Json json = ParseJsonDocument<Json>(text);
  if (!json.is_object() || !json.contains("rank") || !json["rank"].is_number_integer() ||
      !json.contains("environment") || !json["environment"].is_array())
    return std::nullopt;
  Entrant entrant{.rank = json["rank"].get<int>()};
  for (const Json& variable : json["environment"]) {
    if (!variable.is_string()) return std::nullopt;
    entrant.environment.push_back(variable.get<std::string>());
  }
  return entrant;
}

// The step may not be so far yet: it unpacks the source and clears caches first.
absl::StatusOr<UniqueFd> Connect(const std::string& name, int node_rank, absl::Duration patience) {
  const Address address = AddressOf(name, node_rank);
  const absl::Time deadline = absl::Now() + patience;
  while (true) {
    ASSIGN_OR_RETURN(UniqueFd fd, MakeSocket(0));
    if (connect(fd.get(), address.get(), address.size) == 0) return fd;
    const int error = errno;
    if (error != ECONNREFUSED && error != EAGAIN && error != EINTR)
      return absl::ErrnoToStatus(error, "cannot reach the run's step");
    if (absl::Now() >= deadline)
      return absl::NotFoundError(absl::StrCat(
          "the step of node ", node_rank, " of this run was not found here within ",
          absl::FormatDuration(patience),
          ": either it has ended, or the launcher has placed the rank on another node"));
    absl::SleepFor(kRetry);
  }
}

absl::StatusOr<int> Enter(const std::vector<std::string>& arguments, absl::Duration patience) {
  int ranks_per_node = 0;
  if (arguments.size() != 2 || arguments[0].size() != kNameBytes ||
      !absl::SimpleAtoi(arguments[1], &ranks_per_node) || ranks_per_node < 1)
    return absl::InvalidArgumentError("want: assay-worker enter NAME RANKS_PER_NODE");
  ASSIGN_OR_RETURN(const int rank, RankOfThisProcess());
  Json request = {{"rank", rank}, {"environment", Json::array()}};
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (IsOfLauncher(*variable)) request["environment"].push_back(*variable);
  const std::string text = request.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kRequestBytesMax)
    return absl::ResourceExhaustedError("the launcher's variables are longer than 128 KiB");
  ASSIGN_OR_RETURN(const UniqueFd fd, Connect(arguments[0], rank / ranks_per_node, patience));
  ASSIGN_OR_RETURN(const uid_t account, AccountOfPeer(fd.get()));
  if (account != 0 && account != geteuid())
    return absl::PermissionDeniedError(absl::StrCat("account ", account, " is not the step's"));
  if (send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0)
    return absl::ErrnoToStatus(errno, "cannot speak to the run's step");
  std::array<char, kReplyBytesMax> buffer{};
  const ssize_t count = recv(fd.get(), buffer.data(), buffer.size(), 0);
  const absl::string_view reply(buffer.data(), count > 0 ? static_cast<size_t>(count) : 0);
  int code = 0;
  if (absl::SimpleAtoi(reply, &code)) return code;
  if (!reply.empty()) return absl::FailedPreconditionError(reply);
  return absl::UnavailableError("the run's step has ended");
}

}  // namespace

absl::StatusOr<Entrance> Entrance::Open(const std::string& name, int node_rank, uid_t account) {
  ASSIGN_OR_RETURN(UniqueFd fd, MakeSocket(SOCK_NONBLOCK));
  const Address address = AddressOf(name, node_rank);
  if (bind(fd.get(), address.get(), address.size) != 0 || listen(fd.get(), SOMAXCONN) != 0)
    return absl::ErrnoToStatus(errno, "cannot let the launcher's processes in");
  return Entrance(std::move(fd), account);
}

std::vector<int> Entrance::Fds() const {
  std::vector<int> fds = {listener_.get()};
  for (const Caller& caller : callers_)
    fds.push_back(caller.fd.get());
  return fds;
}

void Entrance::Accept() {
  while (true) {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.is_open()) return;
    const absl::StatusOr<uid_t> account = AccountOfPeer(fd.get());
    if (account.ok() && *account == account_ && callers_.size() < kCallersMax)
      callers_.push_back({std::move(fd), std::nullopt});
  }
}

std::vector<Entrant> Entrance::TakeEntrants() {
  Accept();
  std::vector<Entrant> entrants;
  std::string buffer(kRequestBytesMax, '\0');
  for (auto caller = callers_.begin(); caller != callers_.end();) {
    const ssize_t count = recv(caller->fd.get(), buffer.data(), buffer.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      ++caller;
      continue;
    }
    std::optional<Entrant> entrant;
    if (count > 0 && !caller->rank.has_value())
      entrant = ParseEntrant(absl::string_view(buffer.data(), static_cast<size_t>(count)));
    if (!entrant.has_value()) {  // it has gone, or is not one of ours
      has_lost_one_ = has_lost_one_ || caller->rank.has_value();
      caller = callers_.erase(caller);
      continue;
    }
    caller->rank = entrant->rank;
    entrants.push_back(*std::move(entrant));
    ++caller;
  }
  return entrants;
}

void Entrance::Reply(int rank, const std::string& text) {
  // The last to have come with that rank: the first of two is let in, the second refused.
  const auto found = std::find_if(callers_.rbegin(), callers_.rend(),
                                  [rank](const Caller& caller) { return caller.rank == rank; });
  if (found == callers_.rend()) return;
  static_cast<void>(send(found->fd.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  callers_.erase(std::next(found).base());
}

void Entrance::Answer(const RankExit& exit) {
  Reply(exit.rank, absl::StrCat(exit.code));
}

void Entrance::Refuse(int rank, absl::string_view why) {
  LOG(WARNING) << "rank " << rank << " of the launcher is refused: " << why;
  Reply(rank, absl::StrCat(kRefused, why));
}

std::string EntranceName(const v1::RunSpec& spec) {
  return Sha256Hex(absl::StrCat("enter\n", spec.rendezvous_token(), "\n", spec.run(), "\n",
                                spec.generation()))
      .substr(0, kNameBytes);
}

absl::StatusOr<int> RankOfThisProcess() {
  for (const char* const name : kRankVariables) {
    const char* const value = std::getenv(name);
    int rank = 0;
    if (value == nullptr) continue;
    if (absl::SimpleAtoi(value, &rank) && rank >= 0) return rank;
    return absl::FailedPreconditionError(absl::StrCat(name, " is \"", value, "\", no rank"));
  }
  return absl::FailedPreconditionError(
      "neither OMPI_COMM_WORLD_RANK nor PMIX_RANK nor SLURM_PROCID is set: only srun and mpirun "
      "start assay-worker enter, for a run");
}

int RunEnter(const std::vector<std::string>& arguments, absl::Duration patience) {
  const absl::StatusOr<int> code = Enter(arguments, patience);
  if (code.ok()) return *code;
  LOG(ERROR) << "a process of the launcher cannot enter the run: " << code.status();
  return 1;
}

}  // namespace assay::agent
