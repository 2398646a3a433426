// Seals on the messages between ranks: 16 bytes that only a rank of the run can make, and only for
// one message: who sent it, to whom, with which tag, the how-manieth with that tag, and every byte.
//
// A seal is a GMAC (gmac.h); its nonce is the message's number, its key is of one ordered pair of
// ranks and of one communicator.

#ifndef WORKER_COMM_MESSAGE_SEALS_H_
#define WORKER_COMM_MESSAGE_SEALS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "worker/comm/collective.h"
#include "worker/comm/gmac.h"

namespace assay::comm {

inline constexpr size_t kSealBytes = kMacBytes;
using Seal = Mac;

// What tells a message from all others of its pair and direction.
struct MessageNumber {
  Tag tag = 0;
  uint64_t count = 0;  // of earlier ones with this tag
};

// Numbers the messages of one direction of one pair. Tags of collective operations only grow until
// they start again at kFirstCollectiveTag, so of them the last is all that must be remembered.
class MessageCounter {
 public:
  MessageNumber Next(Tag tag);

 private:
  Tag last_tag_ = 0;
  uint64_t rounds_ = 0;              // of the tags of collective operations
  uint64_t count_ = 0;               // of messages with last_tag_
  std::map<Tag, uint64_t> lasting_;  // of tags below kFirstCollectiveTag: a few
};

// One rank's. Not thread-safe.
class MessageSeals {
 public:
  struct World {
    int rank = 0;
    int world_size = 1;
  };
  // `secret` is known to the ranks only. `session` is the same on all of them and never used again.
  MessageSeals(World world, absl::string_view secret, absl::string_view session);

  // Of the next message to `to.peer` with `to.tag`.
  Seal Make(Envelope to, std::span<const std::byte> bytes);

  // Of the next message from there. To be called when a receive starts: messages of one tag arrive
  // in order.
  MessageNumber NumberNext(Envelope from);
  // Whether `peer` made `seal` for these bytes under that number.
  bool IsFrom(int peer, MessageNumber number, std::span<const std::byte> bytes, const Seal& seal);

 private:
  struct Direction {
    std::unique_ptr<Gmac> gmac;  // null until it is needed
    MessageCounter counter;
  };
  Gmac* GmacOf(Direction* direction, int source, int target) const;

  const World world_;
  const std::string secret_;
  const std::string session_;
  std::vector<Direction> sent_;      // by peer
  std::vector<Direction> received_;  // by peer
};

}  // namespace assay::comm

#endif  // WORKER_COMM_MESSAGE_SEALS_H_
