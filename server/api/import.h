// Filing published history: logs to the artifact store, judged again by this coordinator's rules,
// then one command to the core.

#ifndef SERVER_API_IMPORT_H_
#define SERVER_API_IMPORT_H_

#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include "assay/v1/submission_service.pb.h"

#include "server/api/services.h"

namespace assay::api {

// Imports `request` for `principal`; `done` is called exactly once with the core's reply
// (SubmissionReply) or the first error. `backend` and `request` must live until then.
// INVALID_ARGUMENT for a malformed request, DATA_LOSS if a log does not have its digest.
void Import(const Backend* backend, const std::string& principal,
            const v1::ImportSubmissionRequest& request,
            absl::AnyInvocable<void(absl::StatusOr<core::Reply>)> done);

}  // namespace assay::api

#endif  // SERVER_API_IMPORT_H_
