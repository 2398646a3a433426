// The call by which a submitter brings nodes of his own.

#include <string>
#include <utility>
#include <vector>

#include "common/secret.h"
#include "common/status.h"
#include "server/api/convert.h"
#include "server/api/convert_allocation.h"
#include "server/api/names.h"
#include "server/api/submission_service.h"

namespace assay::api {
namespace {

constexpr absl::string_view kJoin = "assay.v1.SubmissionService/JoinAllocation";

constexpr absl::Duration kJoinTokenLifetime = absl::Minutes(10);

core::JoinAllocation ReadJoin(const v1::JoinAllocationRequest& request, core::SubmissionId id,
                              const std::vector<std::string>& secrets, absl::Time now) {
  core::JoinAllocation command{.submission = id,
                               .job = request.job(),
                               .hosts = {request.hosts().begin(), request.hosts().end()},
                               .token_expires_at_us = absl::ToUnixMicros(now + kJoinTokenLifetime)};
  for (const std::string& secret : secrets)
    command.token_sha256s.push_back(TokenHash(secret));
  if (request.has_deadline_time())
    command.deadline_us = request.deadline_time().seconds() * 1'000'000;
  return command;
}

}  // namespace

grpc::ServerUnaryReactor* SubmissionService::JoinAllocation(
    grpc::CallbackServerContext* context, const v1::JoinAllocationRequest* request,
    v1::JoinAllocationResponse* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity = Admit(*backend_, *context, kJoin, *request);
  const absl::StatusOr<core::SubmissionId> id =
      Then(identity, [&](const auth::Identity&) { return ParseSubmissionName(request->name()); });
  if (!id.ok()) {
    call.Finish(id.status());
    return call.reactor;
  }
  std::vector<std::string> secrets;
  for (int i = 0; i < request->hosts_size(); ++i)
    secrets.push_back(MakeToken());
  core::Command command =
      CommandOf(*identity, ReadJoin(*request, *id, secrets, backend_->clock->Wall()));
  const auto answer = [call, secrets](absl::StatusOr<core::Reply> reply) {
    if (!reply.ok()) return call.Finish(reply.status());
    v1::JoinAllocationResponse joined;
    *joined.mutable_allocation() = ToProto(Expect<core::Allocation>(*std::move(reply)));
    joined.mutable_enrolment_tokens()->Assign(secrets.begin(), secrets.end());
    call.Finish(absl::StatusOr<v1::JoinAllocationResponse>(std::move(joined)));
  };
  // Whose it is never changes, so it may be looked up before the core is asked.
  backend_->queries->GetDisclosure(
      *id, [=, this, command = std::move(command)](
               const absl::StatusOr<core::Disclosure>& disclosure) mutable {
        const absl::Status visible =
            CheckVisible(*backend_, *identity, kJoin, disclosure, NameOf(*id)).status();
        if (!visible.ok()) return call.Finish(visible);
        backend_->core->Post(std::move(command), answer);
      });
  return call.reactor;
}

}  // namespace assay::api
