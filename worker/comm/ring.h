// Collective operations as free functions over point-to-point messages.
//
// Every rank calls the same operations in the same order with arguments of the same size. All ranks
// end with the same bits: long vectors by ring reduce-scatter and all-gather, in which each element
// is summed once, on one rank (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for
// clusters of workstations", JPDC 2009); short ones by exchanging everything at once and adding in
// the order of the ranks. The sum's order depends on the rank count and the length, on nothing
// else: not on whether the ranks share memory, through which they then add without messages.
//
// All functions block until done or `deadline`, and fail as Collective::Wait does; the communicator
// is unusable afterwards. With one rank they return at once.

#ifndef WORKER_COMM_RING_H_
#define WORKER_COMM_RING_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/clock.h"
#include "worker/comm/collective.h"

namespace assay::comm {

// Replaces each element by its sum over all ranks.
absl::Status AllReduceSum(Collective* comm, std::span<float> values, MonoTime deadline);
absl::Status AllReduceSum(Collective* comm, std::span<double> values, MonoTime deadline);

// Replaces each element by its mean over all ranks: the sum, divided by the rank count.
absl::Status AllReduceMean(Collective* comm, std::span<float> values, MonoTime deadline);
absl::Status AllReduceMean(Collective* comm, std::span<double> values, MonoTime deadline);

// Concatenates every rank's `mine` in the order of the ranks.
//   all.size() must be world_size * mine.size(); the two must not overlap.
absl::Status AllGather(Collective* comm, std::span<const std::byte> mine, std::span<std::byte> all,
                       MonoTime deadline);

// Copies rank 0's bytes to every rank.
absl::Status BroadcastFromZero(Collective* comm, std::span<std::byte> bytes, MonoTime deadline);

// Returns once every rank has entered.
absl::Status Barrier(Collective* comm, MonoTime deadline);

// OK if every rank passed the same bytes, of which each makes a digest. FAILED_PRECONDITION, on
// every rank, names `what` and the first rank that differs from rank 0; the communicator stays
// usable.
absl::Status AgreeSameBytes(Collective* comm, absl::string_view what,
                            std::span<const std::byte> bytes, MonoTime deadline);

}  // namespace assay::comm

#endif  // WORKER_COMM_RING_H_
