// Messages with several peers at once: what neighbours in a grid need.

#ifndef WORKER_COMM_EXCHANGE_H_
#define WORKER_COMM_EXCHANGE_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"

#include "common/clock.h"
#include "worker/comm/collective.h"

namespace assay::comm {

// What goes to and comes from one peer; an empty span is no message. The peer has the reverse.
struct PeerMessages {
  int peer = 0;
  std::span<const std::byte> sent;
  std::span<std::byte> received;
};

// Starts all receives and sends, then waits for all. Only the ranks named take part. `tag` is below
// kFirstCollectiveTag. Fails as Collective::Wait does.
absl::Status ExchangeMessages(Collective* comm, std::span<const PeerMessages> messages, Tag tag,
                              MonoTime deadline);

}  // namespace assay::comm

#endif  // WORKER_COMM_EXCHANGE_H_
