#include "worker/trainer/rank_connection.h"

#include <utility>

#include "common/json_value.h"
#include "common/log.h"
#include "common/status.h"
#include "worker/comm/registry.h"
#include "worker/trainer/failure.h"

namespace assay {

absl::StatusOr<std::unique_ptr<comm::Collective>> ConnectRanks(const TrainerSpec& spec,
                                                               const Clock* clock) {
  const bool is_alone = spec.world_size == 1;
  comm::CollectiveOptions options = {.rank = spec.rank,
                                     .world_size = spec.world_size,
                                     .rendezvous_address = spec.run.rendezvous_address(),
                                     .run = spec.run.run(),
                                     .token = spec.run.rendezvous_token()};
  if (spec.run.is_rank_network_trusted()) options.sealing = comm::Sealing::kNetworkTrusted;
  if (spec.rank == 0 && spec.run.rendezvous_listener() > 0)
    options.rendezvous_listener = spec.run.rendezvous_listener();
  ASSIGN_OR_RETURN(std::unique_ptr<comm::Collective> comm,
                   WithExitCode(comm::OpenCollective(is_alone ? "single" : "ucx", options, clock,
                                                     clock->Mono() + kMeetTimeout),
                                ExitCode::kCommLost));
  if (!is_alone) LOG(INFO) << "rank_messages=" << Quoted(comm::ProtectionName(comm->protection()));
  return comm;
}

void LogProtection(const comm::Collective& comm, bool devices_joined, RunLog* log) {
  if (comm.world_size() == 1) return;
  JsonObject metadata;
  if (devices_joined) metadata.emplace_back("devices", JsonValue("trusted network"));
  log->Event("rank_messages", JsonValue(comm::ProtectionName(comm.protection())),
             std::move(metadata));
}

}  // namespace assay
