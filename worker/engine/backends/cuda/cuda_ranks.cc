#include "worker/engine/backends/cuda/cuda_ranks.h"

#include <chrono>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/backends/cuda/fault.h"

namespace assay::cuda {

absl::StatusOr<std::string> CudaRanks::MakeId() {
  std::string id;
  RETURN_IF_ERROR(ToStatus("average over ranks", device_->MakeRanksId(&id)));
  return id;
}

absl::Status CudaRanks::Join(const RanksToJoin& ranks) {
  CHECK(!has_joined_ && ranks.rank >= 0 && ranks.rank < ranks.size && ranks.group_size >= 1 &&
        ranks.size % ranks.group_size == 0)
      << "rank=" << ranks.rank << " size=" << ranks.size << " group=" << ranks.group_size;
  const JoinOptions options = {
      .id = ranks.id,
      .rank = ranks.rank,
      .size = ranks.size,
      .group_size = ranks.group_size,
      .timeout = std::chrono::milliseconds(absl::ToInt64Milliseconds(ranks.timeout))};
  RETURN_IF_ERROR(ToStatus("join the ranks", device_->JoinRanks(options)));
  has_joined_ = true;
  return absl::OkStatus();
}

void CudaRanks::Average(const Tensor& values, RankScope scope) {
  Finish();
  if (scope == RankScope::kGroup) Count(values.bytes());
  Issue("average over ranks", AverageCall{.values = values.As<float>(),
                                          .count = values.elements(),
                                          .in_group = scope == RankScope::kGroup,
                                          .is_aside = false});
}

void CudaRanks::Start(const Tensor& values) {
  is_aside_ = true;
  Issue("average over ranks", AverageCall{.values = values.As<float>(),
                                          .count = values.elements(),
                                          .in_group = false,
                                          .is_aside = true});
}

void CudaRanks::Finish() {
  if (std::exchange(is_aside_, false)) Issue("join averages", JoinCall{});
}

void CudaRanks::Exchange(std::span<const RankTransfer> transfers) {
  ExchangeCall call;
  size_t sent_bytes = 0;
  for (const RankTransfer& transfer : transfers) {
    const bool is_sent = transfer.sent.data != nullptr;
    const bool is_received = transfer.received.data != nullptr;
    if (!is_sent && !is_received) continue;
    if (is_sent) sent_bytes += transfer.sent.bytes();
    call.messages.push_back({.rank = transfer.rank,
                             .sent = is_sent ? transfer.sent.As<float>() : nullptr,
                             .sent_count = is_sent ? transfer.sent.elements() : 0,
                             .received = is_received ? transfer.received.As<float>() : nullptr,
                             .received_count = is_received ? transfer.received.elements() : 0});
  }
  if (call.messages.empty()) return;
  Finish();
  Count(sent_bytes);
  Issue("exchange with ranks", call);
}

void CudaRanks::Count(size_t bytes) {
  ++traffic_.exchanges;
  traffic_.bytes += static_cast<int64_t>(bytes);
}

void CudaRanks::Issue(absl::string_view what, const Call& call) {
  CHECK(has_joined_) << what;
  Must(what, recorder_->Issue(call));
}

}  // namespace assay::cuda
