// One rank of a test world in a process of its own.
//
//   comm_peer <rank> <world size> <rendezvous address> <token> <rounds> <progress file>
//
// Reduces vectors, one per round (0 rounds: forever), writes a byte to the progress file after
// each, closes and exits as a trainer does: 0, or kCommLost if another rank was lost.

#include <cstdlib>
#include <iostream>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/exit_code.h"
#include "common/file.h"
#include "common/status.h"
#include "worker/comm/collective.h"
#include "worker/comm/registry.h"
#include "worker/comm/ring.h"

namespace assay::comm {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

absl::Status Run(const CollectiveOptions& options, int rounds, const std::string& progress_path) {
  const RealClock clock;
  ASSIGN_OR_RETURN(const std::unique_ptr<Collective> comm,
                   OpenCollective("ucx", options, &clock, clock.Mono() + kPatience));
  std::vector<float> values(100'000);
  for (int round = 0; rounds == 0 || round < rounds; ++round) {
    values.assign(values.size(), 1.0F);
    RETURN_IF_ERROR(AllReduceSum(comm.get(), std::span<float>(values), clock.Mono() + kPatience));
    if (values.front() != static_cast<float>(options.world_size)) {
      return absl::InternalError("wrong sum");
    }
    if (round == 0) RETURN_IF_ERROR(WriteFileAtomic(progress_path, "running"));
  }
  return comm->Close(clock.Mono() + kPatience);
}

int Main(std::span<char*> args) {
  CollectiveOptions options;
  int rounds = 0;
  if (args.size() != 7 || !absl::SimpleAtoi(args[1], &options.rank) ||
      !absl::SimpleAtoi(args[2], &options.world_size) || !absl::SimpleAtoi(args[5], &rounds)) {
    std::cerr << "usage: comm_peer RANK WORLD_SIZE ADDRESS TOKEN ROUNDS PROGRESS_FILE\n";
    return static_cast<int>(ExitCode::kBadSpec);
  }
  options.rendezvous_address = args[3];
  options.token = args[4];
  const absl::Status status = Run(options, rounds, args[6]);
  if (status.ok()) return static_cast<int>(ExitCode::kOk);
  std::cerr << status << "\n";
  const bool is_lost = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  return static_cast<int>(is_lost ? ExitCode::kCommLost : ExitCode::kInternal);
}

}  // namespace
}  // namespace assay::comm

int main(int argc, char** argv) {
  return assay::comm::Main(std::span<char*>(argv, static_cast<size_t>(argc)));
}
