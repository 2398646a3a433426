#include "server/api/services.h"

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/api/limits.h"
#include "server/auth/permissions.h"

namespace assay::api {

absl::StatusOr<auth::Identity> Admit(const Backend& backend, const grpc::ServerContextBase& context,
                                     absl::string_view method) {
  absl::StatusOr<auth::Identity> identity = backend.guard->Identify(context);
  const absl::Status admitted =
      identity.ok() ? auth::CheckMethod(*identity, method) : identity.status();
  if (admitted.ok()) return identity;
  backend.refusals->Note(backend.guard->PeerOf(context), method, admitted,
                         identity.ok() ? &*identity : nullptr);
  return admitted;
}

absl::StatusOr<auth::Identity> Admit(const Backend& backend, const grpc::ServerContextBase& context,
                                     absl::string_view method,
                                     const google::protobuf::Message& request) {
  ASSIGN_OR_RETURN(auth::Identity identity, Admit(backend, context, method));
  RETURN_IF_ERROR(CheckLimits(request));
  return identity;
}

core::Standing StandingOf(const auth::Identity& identity) {
  return {.role = std::string(auth::RoleName(identity.role)),
          .organization = identity.organization};
}

core::Command CommandOf(const auth::Identity& identity, core::CommandBody body) {
  core::Command command = {
      .principal = identity.principal, .body = std::move(body), .standing = StandingOf(identity)};
  if (identity.role == auth::Role::kWorker)
    command.certificate_generation = identity.certificate_generation;
  return command;
}

core::VisibleTo ViewerOf(const Backend& backend, const auth::Identity& identity,
                         absl::string_view method) {
  return auth::VisibleThrough(identity, method, backend.clock->Wall());
}

absl::StatusOr<core::Sight> CheckVisible(const Backend& backend, const auth::Identity& identity,
                                         absl::string_view method,
                                         const absl::StatusOr<core::Disclosure>& disclosure,
                                         absl::string_view resource) {
  if (!disclosure.ok() && !absl::IsNotFound(disclosure.status())) return disclosure.status();
  core::Sight sight = core::Sight::kNothing;
  if (disclosure.ok()) {
    // Whoever is a member of a joint entry reads it, but touches what is of its very name.
    const bool is_read = auth::AccessOf(identity.role, method) != auth::Access::kOwnOrganization ||
                         auth::CheckOrganization(identity, method, disclosure->organization).ok();
    if (is_read) sight = core::SightOf(ViewerOf(backend, identity, method), *disclosure);
  }
  if (sight != core::Sight::kNothing) return sight;
  return NotVisible(resource);
}

absl::Status NotVisible(absl::string_view resource) {
  return absl::NotFoundError(
      absl::StrCat(resource, " does not exist, or is not of your organization"));
}

void WithSubmission(const Backend& backend, core::SubmissionReply reply,
                    absl::AnyInvocable<void(absl::StatusOr<core::Submission>)> next) {
  if (reply.submission.has_value()) return next(*std::move(reply.submission));
  backend.queries->GetSubmission(reply.id, std::move(next));
}

}  // namespace assay::api
