#include "worker/trainer/spatial_ranks.h"

#include <utility>
#include <vector>

#include "common/log.h"
#include "worker/comm/exchange.h"

namespace assay {
namespace {

// Messages between two ranks arrive in the order in which they were sent, so one tag is enough.
constexpr comm::Tag kSpatialTag = 1;

}  // namespace

SpatialRanks::SpatialRanks(const SpatialGrid& grid, int rank)
    : SpatialGroup(PlaceOf(grid, rank % grid.size())), first_rank_(rank - rank % grid.size()) {}

void SpatialRanks::Connect(comm::Collective* comm, std::function<MonoTime()> deadline) {
  comm_ = comm;
  deadline_ = std::move(deadline);
}

void SpatialRanks::Exchange(std::span<const Transfer> transfers) {
  CHECK(comm_ != nullptr) << "exchange before the ranks have met";
  std::vector<comm::PeerMessages> messages;
  for (const Transfer& transfer : transfers)
    messages.push_back({first_rank_ + transfer.member, transfer.sent, transfer.received});
  // A failure ends the communicator, so the next collective operation reports it.
  comm::ExchangeMessages(comm_, messages, kSpatialTag, deadline_()).IgnoreError();
}

void SpatialRanks::ExchangeOnDevice(std::span<const TensorTransfer> transfers) {
  CHECK(device_ != nullptr) << "exchange before the ranks' devices have met";
  std::vector<RankTransfer> messages;
  for (const TensorTransfer& transfer : transfers)
    messages.push_back({.rank = first_rank_ + transfer.member,
                        .sent = transfer.sent,
                        .received = transfer.received});
  device_->Exchange(messages);
}

}  // namespace assay
