// The collectives a run spec can name.

#ifndef WORKER_COMM_REGISTRY_H_
#define WORKER_COMM_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/clock.h"
#include "worker/comm/collective.h"
#include "worker/comm/protection.h"
#include "worker/comm/rendezvous.h"

namespace assay::comm {

struct CollectiveOptions {
  int rank = 0;
  int world_size = 1;
  std::string rendezvous_address;  // "host:port" of rank 0, which listens there
  int rendezvous_listener = -1;    // of rank 0, which takes it over: a socket that does; -1: none
  std::string run;                 // its name; the same on all ranks
  std::string token;               // the same on all ranks; unused by "single"
  Sealing sealing = Sealing::kOverNetworks;
};

// The names OpenCollective knows, sorted: "single", "ucx".
std::vector<std::string> CollectiveNames();

// Meets the other ranks: rank 0 serves the rendezvous, at its listener if it has one. Errors as
// JoinRendezvous's and RendezvousServer::Start's.
absl::StatusOr<std::unique_ptr<Rendezvous>> Meet(const CollectiveOptions& options,
                                                 const Clock* clock, MonoTime deadline);

// Opens the named collective; rank 0 serves the rendezvous itself. Blocks until all ranks are
// connected. NOT_FOUND: unknown name, the message lists the known ones. INVALID_ARGUMENT: options
// that do not fit. DEADLINE_EXCEEDED, UNAVAILABLE: another rank did not come, or went away.
absl::StatusOr<std::unique_ptr<Collective>> OpenCollective(absl::string_view name,
                                                           const CollectiveOptions& options,
                                                           const Clock* clock, MonoTime deadline);

}  // namespace assay::comm

#endif  // WORKER_COMM_REGISTRY_H_
