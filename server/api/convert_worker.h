// Workers and the messages of WorkerService, from and to core's values. Errors as in convert.h.

#ifndef SERVER_API_CONVERT_WORKER_H_
#define SERVER_API_CONVERT_WORKER_H_

#include "absl/status/statusor.h"

#include "assay/v1/run_spec.pb.h"
#include "assay/v1/worker_service.pb.h"

#include "server/core/command.h"

namespace assay::api {

v1::Worker ToProto(const core::Worker& worker, const core::Presence& presence);
v1::Capabilities ToProto(const core::Capabilities& capabilities);

// `worker` is the caller. The poll time is capped at 20 s.
absl::StatusOr<core::Synchronize> FromProto(const v1::SynchronizeRequest& request);
// All but the stamps and the delay.
v1::DesiredState ToProto(const core::Desired& desired);
v1::RunSpec ToProto(const core::RunOrder& order, core::RunId run, int64_t generation);

// INVALID_ARGUMENT also if the seqs of the batch are not consecutive.
absl::StatusOr<core::AppendRunEvents> FromProto(const v1::EventBatch& batch);

}  // namespace assay::api

#endif  // SERVER_API_CONVERT_WORKER_H_
