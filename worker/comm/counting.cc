#include "worker/comm/counting.h"

#include <algorithm>
#include <utility>

#include "common/log.h"

namespace assay::comm {
namespace {

constexpr std::array<absl::string_view, kSizeClassCount> kSizeClassNames = {
    "up to 8 KiB", "up to 128 KiB", "up to 1 MiB", "up to 16 MiB", "above 16 MiB"};

}  // namespace

size_t SizeClassOf(size_t bytes) {
  const auto limit = std::lower_bound(kSizeLimits.begin(), kSizeLimits.end(), bytes);
  return static_cast<size_t>(limit - kSizeLimits.begin());
}

absl::string_view SizeClassName(size_t size_class) {
  CHECK(size_class < kSizeClassNames.size()) << "size_class=" << size_class;
  return kSizeClassNames[size_class];
}

CountingCollective::CountingCollective(std::unique_ptr<Collective> inner, const Clock* clock)
    : Collective(inner->rank(), inner->world_size()), inner_(std::move(inner)), clock_(clock) {}

void CountingCollective::OperationBegins(size_t bytes) {
  if (depth_++ > 0) return;
  size_class_ = SizeClassOf(bytes);
  OperationCounts& counts = traffic_.by_size[size_class_];
  ++counts.operations;
  counts.bytes += static_cast<int64_t>(bytes);
  begin_ = clock_->Mono();
}

void CountingCollective::OperationEnds() {
  CHECK(depth_ > 0) << "an operation ends that has not begun";
  if (--depth_ > 0) return;
  traffic_.by_size[size_class_].ns += clock_->Mono().ns - begin_.ns;
}

Request CountingCollective::DoStartSend(Envelope to, std::span<const std::byte> bytes) {
  const size_t size_class = depth_ > 0 ? size_class_ : SizeClassOf(bytes.size());
  traffic_.by_size[size_class].sent_bytes += static_cast<int64_t>(bytes.size());
  return inner_->StartSend(to, bytes);
}

void CountingCollective::Shared(size_t bytes) {
  traffic_.by_size[size_class_].sent_bytes += static_cast<int64_t>(bytes);
}

Request CountingCollective::DoStartReceive(Envelope from, std::span<std::byte> bytes) {
  return inner_->StartReceive(from, bytes);
}

absl::Status CountingCollective::DoWait(Request request, MonoTime deadline) {
  const MonoTime begin = clock_->Mono();
  absl::Status status = inner_->Wait(request, deadline);
  traffic_.waiting_ns += clock_->Mono().ns - begin.ns;
  return status;
}

absl::Status CountingCollective::DoAwait(absl::FunctionRef<bool()> is_there, int peer,
                                         MonoTime deadline) {
  const MonoTime begin = clock_->Mono();
  absl::Status status = inner_->Await(is_there, peer, deadline);
  traffic_.waiting_ns += clock_->Mono().ns - begin.ns;
  return status;
}

absl::Status CountingCollective::DoClose(MonoTime deadline) {
  return inner_->Close(deadline);
}

}  // namespace assay::comm
