// What a submission comes to before the core is asked: by the one call that makes it, by the stream
// that brings its source along, and by the call that only asks.

#ifndef SERVER_API_CREATION_H_
#define SERVER_API_CREATION_H_

#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "assay/v1/submission_service.pb.h"

#include "server/api/services.h"
#include "server/auth/identity.h"

namespace assay::api {

// As the table of permissions names them.
inline constexpr absl::string_view kCreate = "assay.v1.SubmissionService/CreateSubmission";
inline constexpr absl::string_view kPlan = "assay.v1.SubmissionService/PlanSubmission";
inline constexpr absl::string_view kCreateWithSource =
    "assay.v1.SubmissionService/CreateSubmissionWithSource";

// The spec of a request with defaults filled in and judged, for a caller who may ask that.
absl::StatusOr<runtime::Plan> PlanFor(const Backend& backend, const auth::Identity& identity,
                                      absl::string_view method, const v1::SubmissionSpec& message);

// The plan of a submission that is to be created.
absl::StatusOr<runtime::Plan> ReadCreate(const Backend& backend, const auth::Identity& identity,
                                         const v1::CreateSubmissionRequest& request);

core::Command ToCommand(const auth::Identity& identity, const std::string& request_id,
                        runtime::Plan plan);

// Completes a plan by what the rules say of its borrowing (WithBorrowing, with its errors) and of
// the dataset that it names; one that is not registered is the core's business. `next` is called
// exactly once, on the query thread.
void WithJudgement(const Backend* backend, const auth::Identity& identity, absl::string_view method,
                   runtime::Plan plan,
                   absl::AnyInvocable<void(absl::StatusOr<runtime::Plan>)> next);

// Calls `next` with the plan, once it is known that what it names as its source is one that the
// same organisation has submitted before; NOT_FOUND, with the remedy, if it is not. At once where
// it has no source.
void WithKnownSource(const Backend* backend, runtime::Plan plan,
                     absl::AnyInvocable<void(absl::StatusOr<runtime::Plan>)> next);

}  // namespace assay::api

#endif  // SERVER_API_CREATION_H_
