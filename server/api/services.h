// What the services share: the parts behind them, and how a call is finished.

#ifndef SERVER_API_SERVICES_H_
#define SERVER_API_SERVICES_H_

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/pki.h"
#include "common/rpc/status_grpc.h"
#include "server/api/guard.h"
#include "server/api/node_enrolment.h"
#include "server/api/refusal_log.h"
#include "server/api/web_codes.h"
#include "server/core/command.h"
#include "server/runtime/certificate_table.h"
#include "server/runtime/core_thread.h"
#include "server/runtime/queries.h"
#include "server/runtime/rule_book.h"
#include "server/runtime/silence_watch.h"
#include "server/runtime/token_table.h"
#include "server/runtime/upkeep.h"
#include "server/runtime/uploads.h"
#include "server/runtime/verifications.h"
#include "server/runtime/watchers.h"

namespace assay::api {

// Constant while the server runs; everything pointed to is thread-safe and outlives the server.
struct Backend {
  const Clock* clock = nullptr;
  runtime::CoreThread* core = nullptr;
  runtime::Queries* queries = nullptr;
  runtime::Uploads* uploads = nullptr;
  runtime::SilenceWatch* silences = nullptr;
  runtime::Watchers* watchers = nullptr;
  runtime::Verifications* verifications = nullptr;
  runtime::Upkeep* upkeep = nullptr;
  const runtime::TokenTable* tokens = nullptr;
  const runtime::CertificateTable* certificates = nullptr;
  const runtime::RuleBook* rules = nullptr;
  const Guard* guard = nullptr;
  NodeEnrolment* nodes = nullptr;  // nullptr: no node enrols by munge
  RefusalLog* refusals = nullptr;
  WebCodes* web_codes = nullptr;
  CertificateAndKey ca;  // no key: enrolment is off
  std::string version;
  std::string data_directory;
  std::string web_url;  // of the site; may be empty
  core::RetentionPolicy retention;
  absl::Time start_time;
  absl::Time certificate_end_time = absl::InfinitePast();  // of the server's own; past: none
  std::string tcp_address;                                 // host:port; empty: none, or any port
  std::string configuration;                               // to show: without secrets
  std::vector<std::string> configuration_left_out;         // the fields that are not in it
  std::function<std::string()> metrics_text;               // may be empty: there is no port
};

inline constexpr absl::string_view kBackendVersion = "0.1.0";

// The alternative T of a reply that cannot be another: the core answers each command with one type.
template <typename T>
T Expect(core::Reply reply) {
  T* const value = std::get_if<T>(&reply);
  CHECK(value != nullptr) << "index=" << reply.index();
  return std::move(*value);
}

// What `next` makes of the value, or the error that there is instead of one.
template <typename T, typename Next>
auto Then(const absl::StatusOr<T>& value, Next next) -> decltype(next(*value)) {
  if (!value.ok()) return value.status();
  return next(*value);
}

// Who calls, if they may call `method`: with this every method begins. Errors of Guard::Admit,
// which are logged.
absl::StatusOr<auth::Identity> Admit(const Backend& backend, const grpc::ServerContextBase& context,
                                     absl::string_view method);
// The same, and `request` is within its limits (limits.h); else INVALID_ARGUMENT.
absl::StatusOr<auth::Identity> Admit(const Backend& backend, const grpc::ServerContextBase& context,
                                     absl::string_view method,
                                     const google::protobuf::Message& request);

// As what `identity` acts.
core::Standing StandingOf(const auth::Identity& identity);

// The command that `identity` gives: by whom, as what, and under which certificate.
core::Command CommandOf(const auth::Identity& identity, core::CommandBody body);

// What `identity` sees through `method` at this moment.
core::VisibleTo ViewerOf(const Backend& backend, const auth::Identity& identity,
                         absl::string_view method);

// How much of `resource` `identity` sees through `method`, given who may see it as it was looked
// up; never nothing. By a method that is open to owners alone, whole or not at all. NOT_FOUND in
// the same words whether it does not exist or is a rival's: who competes is nobody else's business.
// Look up nothing else before, so that both take equally long.
absl::StatusOr<core::Sight> CheckVisible(const Backend& backend, const auth::Identity& identity,
                                         absl::string_view method,
                                         const absl::StatusOr<core::Disclosure>& disclosure,
                                         absl::string_view resource);

// What CheckVisible says of what is not there, or not for the caller.
absl::Status NotVisible(absl::string_view resource);

// Calls `next` with the submission that the core has answered with, from the store if the core let
// it go already.
void WithSubmission(const Backend& backend, core::SubmissionReply reply,
                    absl::AnyInvocable<void(absl::StatusOr<core::Submission>)> next);

// One unary call. Copyable into the callbacks that lead to its end; Finish is called exactly once,
// and nothing of the call may be touched afterwards.
template <typename Response>
struct UnaryCall {
  grpc::ServerUnaryReactor* reactor;
  Response* response;

  void Finish(const absl::Status& status) const { reactor->Finish(ToGrpc(status)); }
  void Finish(absl::StatusOr<Response> result) const {
    if (result.ok()) *response = *std::move(result);
    Finish(result.status());
  }
};

template <typename Response>
UnaryCall<Response> StartUnary(grpc::CallbackServerContext* context, Response* response) {
  return UnaryCall<Response>{context->DefaultReactor(), response};
}

// A unary call that the core answers: admits the caller, posts the body that `read(identity)` gives
// (StatusOr<CommandBody>), and finishes with `write(reply, identity)` (Response).
template <typename Response, typename Read, typename Write>
grpc::ServerUnaryReactor* AskCore(const Backend& backend, grpc::CallbackServerContext* context,
                                  const google::protobuf::Message& request, Response* response,
                                  absl::string_view method, Read read, Write write) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity = Admit(backend, *context, method, request);
  absl::StatusOr<core::CommandBody> body =
      Then(identity, [&](const auth::Identity& who) { return read(who); });
  if (!body.ok()) {
    call.Finish(body.status());
    return call.reactor;
  }
  backend.core->Post(
      CommandOf(*identity, *std::move(body)),
      [call, identity = *identity, write = std::move(write)](absl::StatusOr<core::Reply> reply) {
        if (!reply.ok()) return call.Finish(reply.status());
        call.Finish(write(*std::move(reply), identity));
      });
  return call.reactor;
}

}  // namespace assay::api

#endif  // SERVER_API_SERVICES_H_
