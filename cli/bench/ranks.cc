#include "cli/bench/ranks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "assay/v1/fabric.pb.h"

#include "common/clock.h"
#include "common/exit_code.h"
#include "common/file.h"
#include "common/process.h"
#include "common/secret.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr absl::Duration kCountPatience = absl::Minutes(1);
// How long one rank is looked at before the next.
constexpr absl::Duration kTurn = absl::Milliseconds(20);

// Where rank 0 awaits the others: a port of the loopback device that listens already.
struct Listener {
  UniqueFd fd;
  std::string address;
};

absl::StatusOr<Listener> Listen() {
  Listener listener{UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), {}};
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (!listener.fd.is_open() || bind(listener.fd.get(), generic, size) != 0 ||
      listen(listener.fd.get(), SOMAXCONN) != 0 ||
      getsockname(listener.fd.get(), generic, &size) != 0)
    return absl::ErrnoToStatus(errno, "listening on the loopback device");
  listener.address = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  return listener;
}

class Ranks {
 public:
  explicit Ranks(const RanksToTime& options) : options_(options) {}
  ~Ranks() {
    for (const ProcessId& rank : processes_)
      if (IsRunning(rank)) StopGroup(rank, absl::ZeroDuration()).IgnoreError();
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  absl::Status Start(const std::vector<int64_t>& sizes) {
    ASSIGN_OR_RETURN(const Listener listener, Listen());
    v1::FabricSpec spec;
    spec.set_name("bench");
    spec.set_node_count(options_.count);
    spec.set_rendezvous_address(listener.address);
    spec.set_token(absl::BytesToHexString(RandomBytes(16)));
    spec.mutable_time_limit()->set_seconds(absl::ToInt64Seconds(options_.patience));
    const std::string sums = absl::StrCat(options_.on_gpus ? "--gpu_all_reduce=" : "--all_reduce=",
                                          absl::StrJoin(sizes, ","));
    for (int rank = 0; rank < options_.count; ++rank) {
      spec.set_rank(rank);
      spec.set_rendezvous_listener(rank == 0 ? kInheritedFd : 0);
      const std::string path = PathOf("spec", rank);
      RETURN_IF_ERROR(WriteFileAtomic(path, spec.SerializeAsString()));
      ASSIGN_OR_RETURN(const ProcessId process,
                       Spawn({.argv = {options_.program, sums, path},
                              .output_path = PathOf("output", rank),
                              .inherited_fd = rank == 0 ? listener.fd.get() : -1}));
      processes_.push_back(process);
    }
    return absl::OkStatus();
  }

  // What rank 0 has printed. The first rank that fails ends it: the others would wait for it.
  absl::StatusOr<std::string> Finish() {
    const RealClock clock;
    const MonoTime deadline = clock.Mono() + options_.patience;
    std::set<int> running;
    for (int rank = 0; rank < options_.count; ++rank)
      running.insert(rank);
    for (int rank = 0; !running.empty(); rank = (rank + 1) % options_.count) {
      if (!running.contains(rank)) continue;
      const absl::StatusOr<int> code = WaitForExit(processes_[static_cast<size_t>(rank)], kTurn);
      if (absl::IsDeadlineExceeded(code.status()) && clock.Mono() < deadline) continue;
      RETURN_IF_ERROR(code.status());
      if (*code != 0) return Failure(rank, *code);
      running.erase(rank);
    }
    return ReadFile(PathOf("output", 0));
  }

 private:
  absl::Status Failure(int rank, int code) const {
    const bool lacks_something = code == static_cast<int>(ExitCode::kBackend);
    return {
        lacks_something ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kUnavailable,
        absl::StrCat("rank ", rank, " has ended with ", code, ": ",
                     absl::StripAsciiWhitespace(ReadFile(PathOf("output", rank)).value_or("")))};
  }
  std::string PathOf(absl::string_view what, int rank) const {
    return JoinPath(options_.directory, absl::StrCat(options_.on_gpus ? "gpu_" : "", what, rank));
  }

  const RanksToTime options_;
  std::vector<ProcessId> processes_;
};

}  // namespace

absl::StatusOr<VectorTimes> TimeRanks(const RanksToTime& options,
                                      const std::vector<int64_t>& sizes) {
  Ranks ranks(options);
  RETURN_IF_ERROR(ranks.Start(sizes));
  ASSIGN_OR_RETURN(const std::string printed, ranks.Finish());
  return ReadTimes(printed, sizes, "the ranks");
}

absl::StatusOr<int> CountGpus(const std::string& program, const std::string& directory) {
  const std::string output = JoinPath(directory, "gpus");
  ASSIGN_OR_RETURN(const ProcessId process,
                   Spawn({.argv = {program, "--gpus"}, .output_path = output}));
  const absl::StatusOr<int> code = WaitForExit(process, kCountPatience);
  if (!code.ok()) {
    StopGroup(process, absl::ZeroDuration()).IgnoreError();
    return Annotate(code.status(), "counting the GPUs");
  }
  const std::string printed = ReadFile(output).value_or("");
  int count = 0;
  if (*code == 0 && absl::SimpleAtoi(printed, &count)) return count;
  return absl::FailedPreconditionError(
      absl::StrCat("--nccl needs GPUs of NVIDIA: ", absl::StripAsciiWhitespace(printed)));
}

}  // namespace assay::cli
