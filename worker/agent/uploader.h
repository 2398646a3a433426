// Uploads one file of a run as an artifact.

#ifndef WORKER_AGENT_UPLOADER_H_
#define WORKER_AGENT_UPLOADER_H_

#include <string>

#include "absl/status/statusor.h"

#include "assay/v1/worker_service.grpc.pb.h"

#include "common/rpc/channel.h"
#include "worker/agent/call_slot.h"
#include "worker/agent/machine.h"
#include "worker/agent/run_recorder.h"

namespace assay::agent {

// Sends the file in pieces of 64 KiB; it must not change meanwhile. The result is what the
// coordinator has on stable storage. DATA_LOSS if the digest differs
// there; ALREADY_EXISTS if the run has other bytes under this name; NOT_FOUND if the file or the
// run is missing; UNAVAILABLE and others if the connection broke. Blocks.
absl::StatusOr<UploadedFile> UploadFile(v1::WorkerService::StubInterface* stub,
                                        const Endpoint& endpoint, const RunKey& key,
                                        const ArtifactFile& file, CallSlot* slot);

}  // namespace assay::agent

#endif  // WORKER_AGENT_UPLOADER_H_
