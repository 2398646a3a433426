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

absl::Status JoinDeviceRanks(RankAverage* average, comm::Collective* comm, MonoTime deadline) {
  if (average == nullptr || comm->world_size() == 1) return absl::OkStatus();
  Message message;
  if (comm->rank() == 0) message = MakeMessage(average);
  RETURN_IF_ERROR(WithExitCode(
      comm::BroadcastFromZero(comm, std::as_writable_bytes(std::span(&message, 1)), deadline),
      ExitCode::kCommLost));
  if (message.size == 0 || message.size > message.bytes.size()) return absl::OkStatus();
  const std::string id(message.bytes.data(), message.size);
  return WithExitCode(average->Join(id, comm->rank(), comm->world_size()), ExitCode::kBackend);
}

}  // namespace assay
