#include "worker/engine/arena.h"

#include "common/log.h"
#include "common/status.h"

namespace assay {

Arena::~Arena() {
  if (data_ != nullptr) backend_->Free(data_);
}

void Arena::Reserve(const Shape& shape, DType dtype, Tensor* tensor) {
  CHECK(data_ == nullptr) << "reserved after Commit, shape=" << shape.ToString();
  const size_t offset = (bytes_ + alignment_ - 1) / alignment_ * alignment_;
  *tensor = {nullptr, shape, dtype};
  slots_.push_back({tensor, offset});
  bytes_ = offset + tensor->bytes();
}

absl::Status Arena::Commit() {
  CHECK(data_ == nullptr) << "committed twice";
  if (bytes_ == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(data_, backend_->Allocate(bytes_));
  for (const Slot& slot : slots_)
    slot.tensor->data = static_cast<std::byte*>(data_) + slot.offset;
  return absl::OkStatus();
}

Tensor Arena::Flat(DType dtype) const {
  CHECK(data_ != nullptr) << "flat view before Commit";
  return {data_, Shape{static_cast<int64_t>(bytes_ / SizeOf(dtype))}, dtype};
}

}  // namespace assay
