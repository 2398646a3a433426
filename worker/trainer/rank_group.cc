#include "worker/trainer/rank_group.h"

#include <cstdlib>
#include <utility>

#include "common/exit_code.h"
#include "common/log.h"
#include "common/status.h"
#include "worker/trainer/failure.h"

namespace assay {

absl::Status AverageOverGroup(comm::Collective* comm, int size, std::span<float> values,
                              MonoTime deadline) {
  CHECK(size >= 1 && comm->world_size() % size == 0) << "size=" << size;
  const comm::Tag tag = comm->NextTag();
  if (size == 1) return absl::OkStatus();
  const comm::Operation operation(comm, values.size_bytes());
  const size_t count = values.size(), members = static_cast<size_t>(size);
  const int first = comm->rank() - comm->rank() % size;
  std::vector<float> received(count * members);
  std::vector<comm::Request> requests;
  for (size_t member = 0; member < members; ++member) {
    const int peer = first + static_cast<int>(member);
    if (peer == comm->rank()) continue;
    const std::span<float> place = std::span(received).subspan(member * count, count);
    requests.push_back(comm->StartReceive({peer, tag}, std::as_writable_bytes(place)));
    requests.push_back(comm->StartSend({peer, tag}, std::as_bytes(values)));
  }
  for (const comm::Request request : requests)
    RETURN_IF_ERROR(comm->Wait(request, deadline));
  const size_t own = static_cast<size_t>(comm->rank() - first);
  for (size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (size_t member = 0; member < members; ++member)
      sum += member == own ? values[i] : received[member * count + i];
    values[i] = sum / static_cast<float>(size);
  }
  return absl::OkStatus();
}

RankGroup::RankGroup(comm::Collective* comm, int size, std::function<MonoTime()> deadline)
    : comm_(comm), size_(size), deadline_(std::move(deadline)) {}

void RankGroup::Average(const Tensor& values) {
  if (device_ != nullptr) return device_->Average(values, RankScope::kGroup);
  const absl::Status status = AverageOverGroup(comm_, size_, values.Span<float>(), deadline_());
  if (status.ok()) return;
  LOG(ERROR) << "normalisation group: status=" << Quoted(status);
  std::_Exit(static_cast<int>(ExitCodeOf(WithExitCode(status, ExitCode::kCommLost))));
}

}  // namespace assay
