// Collective over UCX 1.13's tag-matching messages: shared memory on one host, TCP between hosts.

#ifndef WORKER_COMM_UCX_H_
#define WORKER_COMM_UCX_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "common/clock.h"
#include "worker/comm/collective.h"
#include "worker/comm/protection.h"
#include "worker/comm/rendezvous.h"

namespace assay::comm {

// Each setting yields to the environment variable UCX_<NAME>, if that is set.
struct UcxOptions {
  // UCX_TLS. Empty: "posix,self" if all ranks share a host, else "tcp,posix,self".
  std::string transports;
  // UCX_RNDV_THRESH, for TCP only: below this a message is sent without asking.
  std::string tcp_rendezvous_threshold = "256k";
  // UCX_NET_DEVICES, for TCP only, is the interface through which rank 0's rendezvous is reached.

  Sealing sealing = Sealing::kOverNetworks;
  std::string secret;  // known to the ranks only; for seals
};

// Meets the other ranks through `rendezvous`, which it keeps, and connects to all of them; blocks
// until every rank is connected. `clock` must outlive the result. The death of a rank fails the
// others' operations at once: UNAVAILABLE, naming it. A message that no rank sealed, where they are
// sealed, fails the operation that waited for it: UNAUTHENTICATED.
// DEADLINE_EXCEEDED, UNAVAILABLE: a rank did not come or went away. FAILED_PRECONDITION: UCX offers
// none of the transports. INVALID_ARGUMENT: seals are needed and there is no secret.
absl::StatusOr<std::unique_ptr<Collective>> OpenUcx(std::unique_ptr<Rendezvous> rendezvous,
                                                    const UcxOptions& options, const Clock* clock,
                                                    MonoTime deadline);

}  // namespace assay::comm

#endif  // WORKER_COMM_UCX_H_
