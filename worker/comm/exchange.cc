#include "worker/comm/exchange.h"

#include <vector>

#include "common/log.h"
#include "common/status.h"

namespace assay::comm {

absl::Status ExchangeMessages(Collective* comm, std::span<const PeerMessages> messages, Tag tag,
                              MonoTime deadline) {
  CHECK(tag < kFirstCollectiveTag) << "tag=" << tag;
  size_t bytes = 0;
  for (const PeerMessages& message : messages)
    bytes += message.sent.size();
  const Operation operation(comm, bytes);
  std::vector<Request> requests;
  requests.reserve(2 * messages.size());
  for (const PeerMessages& message : messages)
    if (!message.received.empty())
      requests.push_back(comm->StartReceive({.peer = message.peer, .tag = tag}, message.received));
  for (const PeerMessages& message : messages)
    if (!message.sent.empty())
      requests.push_back(comm->StartSend({.peer = message.peer, .tag = tag}, message.sent));
  for (const Request& request : requests)
    RETURN_IF_ERROR(comm->Wait(request, deadline));
  return absl::OkStatus();
}

}  // namespace assay::comm
