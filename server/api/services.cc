#include "server/api/services.h"

#include "common/status.h"
#include "server/api/limits.h"

namespace assay::api {

absl::StatusOr<auth::Identity> Admit(const Backend& backend, const grpc::ServerContextBase& context,
                                     absl::string_view method,
                                     const google::protobuf::Message& request) {
  ASSIGN_OR_RETURN(auth::Identity identity, backend.guard->Admit(context, method));
  RETURN_IF_ERROR(CheckLimits(request));
  return identity;
}

void WithSubmission(const Backend& backend, core::SubmissionReply reply,
                    absl::AnyInvocable<void(absl::StatusOr<core::Submission>)> next) {
  if (reply.submission.has_value()) return next(*std::move(reply.submission));
  backend.queries->GetSubmission(reply.id, std::move(next));
}

}  // namespace assay::api
