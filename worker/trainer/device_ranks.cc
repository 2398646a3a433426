#include "worker/trainer/device_ranks.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>

#include "common/exit_code.h"
#include "common/log.h"
#include "common/status.h"
#include "worker/comm/ring.h"
#include "worker/trainer/failure.h"

namespace assay {
namespace {

// A length and as many bytes.
struct Message {
  std::array<char, 248> bytes = {};
  uint64_t size = 0;
};

Message MakeMessage(RankAverage* average) {
  const absl::StatusOr<std::string> id = average->MakeId();
  Message message;
  if (!id.ok()) {
    LOG(WARNING) << "gradients are averaged on the host: " << id.status();
    return message;
  }
  CHECK(id->size() <= message.bytes.size()) << "size=" << id->size();
  std::memcpy(message.bytes.data(), id->data(), id->size());
  message.size = id->size();
  return message;
}

}  // namespace

absl::Status JoinDeviceRanks(RankAverage* average, int group_size, comm::Collective* comm,
                             const Clock* clock, absl::Duration timeout) {
  if (average == nullptr || comm->world_size() == 1) return absl::OkStatus();
  Message message;
  if (comm->rank() == 0) message = MakeMessage(average);
  RETURN_IF_ERROR(
      WithExitCode(comm::BroadcastFromZero(comm, std::as_writable_bytes(std::span(&message, 1)),
                                           clock->Mono() + timeout),
                   ExitCode::kCommLost));
  if (message.size == 0 || message.size > message.bytes.size()) return absl::OkStatus();
  // From here on all ranks wait for each other alike, however long the broadcast took.
  return WithExitCode(average->Join({.id = std::string(message.bytes.data(), message.size),
                                     .rank = comm->rank(),
                                     .size = comm->world_size(),
                                     .group_size = group_size,
                                     .timeout = timeout}),
                      ExitCode::kBackend);
}

}  // namespace assay
