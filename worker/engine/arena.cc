#include "worker/engine/arena.h"

#include <algorithm>
#include <utility>

#include "common/log.h"
#include "common/status.h"

namespace assay {

Arena::~Arena() {
  if (data_ != nullptr) backend_->Free(data_);
  if (shared_data_ != nullptr && !is_borrowing_) backend_->Free(shared_data_);
}

void Arena::Reserve(const Shape& shape, DType dtype, Tensor* tensor) {
  CHECK(!is_placed_) << "reserved after Place, shape=" << shape.ToString();
  const size_t offset = Aligned(bytes_);
  *tensor = {nullptr, shape, dtype};
  slots_.push_back({tensor, offset, {}});
  bytes_ = offset + tensor->bytes();
}

void Arena::ReserveShared(const Shape& shape, DType dtype, Lifetimes lifetimes, Tensor* tensor) {
  CHECK(!is_placed_) << "reserved after Place, shape=" << shape.ToString();
  for (const Lifetime& lifetime : lifetimes)
    CHECK(lifetime.first <= lifetime.last) << "from=" << lifetime.first << " to=" << lifetime.last;
  *tensor = {nullptr, shape, dtype};
  shared_slots_.push_back({tensor, 0, std::move(lifetimes)});
}

bool Arena::Meet(const Slot& a, const Slot& b) {
  for (const Lifetime& one : a.lifetimes)
    for (const Lifetime& other : b.lifetimes)
      if (one.Overlaps(other)) return true;
  return false;
}

// The lowest offset at which `slot` meets none of `placed`, which are in order of offset.
size_t Arena::LowestFit(const Slot& slot, const std::vector<const Slot*>& placed) const {
  size_t offset = 0;
  for (const Slot* other : placed) {
    if (!Meet(*other, slot)) continue;
    if (offset + slot.tensor->bytes() <= other->offset) break;
    offset = std::max(offset, Aligned(other->offset + other->tensor->bytes()));
  }
  return offset;
}

// Largest first, each as low as those before it allow: what is small finds its place in gaps.
void Arena::Place() {
  CHECK(!is_placed_) << "placed twice";
  is_placed_ = true;
  std::stable_sort(shared_slots_.begin(), shared_slots_.end(), [](const Slot& a, const Slot& b) {
    return a.tensor->bytes() > b.tensor->bytes();
  });
  std::vector<const Slot*> placed;
  for (Slot& slot : shared_slots_) {
    slot.offset = LowestFit(slot, placed);
    shared_bytes_ = std::max(shared_bytes_, slot.offset + slot.tensor->bytes());
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), slot.offset,
                         [](size_t offset, const Slot* other) { return offset < other->offset; }),
        &slot);
  }
}

absl::Status Arena::Commit(const Arena* lender) {
  CHECK(!is_committed_) << "committed twice";
  is_committed_ = true;
  if (!is_placed_) Place();
  if (bytes_ > 0) {
    ASSIGN_OR_RETURN(data_, backend_->Allocate(bytes_));
  }
  is_borrowing_ = lender != nullptr && lender->shared_bytes_ >= shared_bytes_;
  if (is_borrowing_) {
    shared_data_ = lender->shared_data_;
  } else if (shared_bytes_ > 0) {
    ASSIGN_OR_RETURN(shared_data_, backend_->Allocate(shared_bytes_));
  }
  for (const Slot& slot : slots_)
    slot.tensor->data = static_cast<std::byte*>(data_) + slot.offset;
  for (const Slot& slot : shared_slots_)
    slot.tensor->data = static_cast<std::byte*>(shared_data_) + slot.offset;
  return absl::OkStatus();
}

Tensor Arena::Flat(DType dtype) const {
  CHECK(data_ != nullptr) << "flat view before Commit";
  return {data_, Shape{static_cast<int64_t>(bytes_ / SizeOf(dtype))}, dtype};
}

}  // namespace assay
