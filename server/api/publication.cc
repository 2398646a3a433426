// The call by which an operator lets anybody see an entry.

#include <utility>

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/api/convert.h"
#include "server/api/names.h"
#include "server/api/submission_service.h"

namespace assay::api {
namespace {

constexpr absl::string_view kPublish = "assay.v1.SubmissionService/PublishSubmission";

absl::StatusOr<core::PublishSubmission> ReadPublish(const v1::PublishSubmissionRequest& request) {
  core::PublishSubmission command;
  ASSIGN_OR_RETURN(command.submission, ParseSubmissionName(request.name()));
  if (!request.has_publish_time()) return command;
  command.at_us = request.publish_time().seconds() * 1'000'000;
  if (command.at_us > 0) return command;
  return absl::InvalidArgumentError(
      absl::StrCat("publish_time is ", request.publish_time().seconds(),
                   " s since 1970: expected a time after that; leave it out to publish at once"));
}

}  // namespace

grpc::ServerUnaryReactor* SubmissionService::PublishSubmission(
    grpc::CallbackServerContext* context, const v1::PublishSubmissionRequest* request,
    v1::Submission* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity = Admit(*backend_, *context, kPublish, *request);
  absl::StatusOr<core::PublishSubmission> command =
      Then(identity, [&](const auth::Identity&) { return ReadPublish(*request); });
  if (!command.ok()) {
    call.Finish(command.status());
    return call.reactor;
  }
  backend_->core->Post(CommandOf(*identity, *std::move(command)),
                       [this, call](absl::StatusOr<core::Reply> reply) {
                         if (!reply.ok()) return call.Finish(reply.status());
                         WithSubmission(*backend_, Expect<core::SubmissionReply>(*std::move(reply)),
                                        [call](absl::StatusOr<core::Submission> found) {
                                          if (!found.ok()) return call.Finish(found.status());
                                          call.Finish(ToProto(*found));
                                        });
                       });
  return call.reactor;
}

}  // namespace assay::api
