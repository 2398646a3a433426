#include "worker/comm/message_seals.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "worker/comm/collective.h"
#include "worker/comm/gmac.h"
#include "worker/comm/keys.h"

namespace assay::comm {
namespace {

MacNonce NonceOf(MessageNumber number) {
  MacNonce nonce = {};
  for (size_t i = 0; i < 4; ++i)
    nonce[i] = static_cast<uint8_t>(number.tag >> (8 * i));
  for (size_t i = 0; i < 8; ++i)
    nonce[4 + i] = static_cast<uint8_t>(number.count >> (8 * i));
  return nonce;
}

}  // namespace

MessageNumber MessageCounter::Next(Tag tag) {
  if (tag < kFirstCollectiveTag) return {.tag = tag, .count = lasting_[tag]++};
  if (tag != last_tag_) {
    if (tag < last_tag_) ++rounds_;
    last_tag_ = tag;
    count_ = 0;
  }
  // An operation has far fewer than 2^32 messages, and nobody sees 2^32 rounds of 2^31 operations.
  return {.tag = tag, .count = rounds_ << 32 | count_++};
}

MessageSeals::MessageSeals(World world, absl::string_view secret, absl::string_view session)
    : world_(world),
      secret_(secret),
      session_(session),
      sent_(static_cast<size_t>(world.world_size)),
      received_(static_cast<size_t>(world.world_size)) {}

Seal MessageSeals::Make(Envelope to, std::span<const std::byte> bytes) {
  Direction& direction = sent_[static_cast<size_t>(to.peer)];
  const MessageNumber number = direction.counter.Next(to.tag);
  return GmacOf(&direction, world_.rank, to.peer)->Of(NonceOf(number), bytes);
}

MessageNumber MessageSeals::NumberNext(Envelope from) {
  return received_[static_cast<size_t>(from.peer)].counter.Next(from.tag);
}

bool MessageSeals::IsFrom(int peer, MessageNumber number, std::span<const std::byte> bytes,
                          const Seal& seal) {
  Direction& direction = received_[static_cast<size_t>(peer)];
  return SameMac(GmacOf(&direction, peer, world_.rank)->Of(NonceOf(number), bytes), seal);
}

Gmac* MessageSeals::GmacOf(Direction* direction, int source, int target) const {
  if (direction->gmac == nullptr) {
    const std::string purpose = absl::StrCat("assay messages 1: ", source, " to ", target);
    direction->gmac = std::make_unique<Gmac>(DeriveKey(secret_, session_, purpose));
  }
  return direction->gmac.get();
}

}  // namespace assay::comm
