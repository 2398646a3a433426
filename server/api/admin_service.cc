#include "server/api/admin_service.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/secret.h"
#include "common/status.h"
#include "server/api/backup_stream.h"
#include "server/api/convert.h"
#include "server/api/names.h"
#include "server/api/prune_stream.h"
#include "server/api/verify_stream.h"

namespace assay::api {
namespace {

constexpr absl::string_view kCreateToken = "assay.v1.AdminService/CreateToken";
constexpr absl::string_view kListTokens = "assay.v1.AdminService/ListTokens";
constexpr absl::string_view kRevokeToken = "assay.v1.AdminService/RevokeToken";
constexpr absl::string_view kAddDataset = "assay.v1.AdminService/AddDataset";
constexpr absl::string_view kListDatasets = "assay.v1.AdminService/ListDatasets";
constexpr absl::string_view kRemoveDataset = "assay.v1.AdminService/RemoveDataset";
constexpr absl::string_view kListRounds = "assay.v1.AdminService/ListRounds";
constexpr absl::string_view kGetServerInfo = "assay.v1.AdminService/GetServerInfo";
constexpr absl::string_view kListSubmissions = "assay.v1.SubmissionService/ListSubmissions";
constexpr absl::string_view kListAudit = "assay.v1.AdminService/ListAudit";
constexpr absl::string_view kVerifyStore = "assay.v1.AdminService/VerifyStore";
constexpr absl::string_view kBackUpStore = "assay.v1.AdminService/BackUpStore";
constexpr absl::string_view kPruneStore = "assay.v1.AdminService/PruneStore";
constexpr absl::string_view kGetUsage = "assay.v1.AdminService/GetUsage";

constexpr absl::Duration kAccessLifetime = absl::Hours(12);  // a working day
constexpr absl::Duration kEnrolLifetime = absl::Hours(1);    // the time to set up a node
constexpr absl::Duration kLifetimeMax = absl::Hours(24 * 366);

// How long a new token shall live.
absl::StatusOr<absl::Duration> ReadLifetime(const v1::CreateTokenRequest& request) {
  const absl::Duration wanted = absl::Seconds(request.lifetime().seconds());
  if (wanted < absl::ZeroDuration() || wanted > kLifetimeMax) {
    return absl::InvalidArgumentError(absl::StrCat("lifetime is ", absl::FormatDuration(wanted),
                                                   ": give 0 for the default, at most ",
                                                   absl::FormatDuration(kLifetimeMax)));
  }
  if (wanted != absl::ZeroDuration()) return wanted;
  return request.token().kind() == v1::Token::ENROL ? kEnrolLifetime : kAccessLifetime;
}

absl::Status CheckAccess(const v1::Token& token) {
  const std::optional<auth::Role> role = auth::ParseRole(token.role());
  // Workers show certificates: a token that makes a worker of whoever holds it is not made.
  if (!role.has_value() || *role == auth::Role::kWorker) {
    return absl::InvalidArgumentError(absl::StrCat(
        "token.role is \"", token.role(), "\": choose public, submitter, reviewer or operator"));
  }
  if (token.principal().empty())
    return absl::InvalidArgumentError("token.principal is empty: say whom the token stands for");
  if ((*role == auth::Role::kSubmitter) == token.organization().empty()) {
    return absl::InvalidArgumentError(absl::StrCat("token.organization is \"", token.organization(),
                                                   "\" for role ", token.role(),
                                                   ": a submitter has one, other roles have none"));
  }
  return absl::OkStatus();
}

// The command that makes the token whose secret is `secret`.
absl::StatusOr<core::CommandBody> ReadCreateToken(const v1::CreateTokenRequest& request,
                                                  const std::string& secret, absl::Time now) {
  const v1::Token& token = request.token();
  core::CreateToken command;
  if (!request.request_id().empty()) RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  switch (token.kind()) {
    case v1::Token::ACCESS:
      RETURN_IF_ERROR(CheckAccess(token));
      command.role = token.role();
      command.organization = token.organization();
      break;
    case v1::Token::ENROL:
      RETURN_IF_ERROR(core::CheckName("worker", token.principal()));
      command.kind = core::TokenKind::kEnrol;
      command.role = std::string(auth::RoleName(auth::Role::kWorker));
      break;
    default:
      return absl::InvalidArgumentError("token.kind is not set: choose ACCESS or ENROL");
  }
  ASSIGN_OR_RETURN(const absl::Duration lifetime, ReadLifetime(request));
  command.request_id = request.request_id();
  command.principal = token.principal();
  command.secret_sha256 = TokenHash(secret);
  command.expires_at_us = absl::ToUnixMicros(now + lifetime);
  return command;
}

}  // namespace

grpc::ServerUnaryReactor* AdminService::CreateToken(grpc::CallbackServerContext* context,
                                                    const v1::CreateTokenRequest* request,
                                                    v1::CreateTokenResponse* response) {
  const std::string secret = MakeToken();
  return AskCore(
      *backend_, context, *request, response, kCreateToken,
      [&](const auth::Identity&) {
        return ReadCreateToken(*request, secret, backend_->clock->Wall());
      },
      [secret](core::Reply reply, const auth::Identity&) {
        v1::CreateTokenResponse created;
        *created.mutable_token() = ToProto(Expect<core::Token>(std::move(reply)));
        created.set_secret(secret);
        return absl::StatusOr<v1::CreateTokenResponse>(std::move(created));
      });
}

grpc::ServerUnaryReactor* AdminService::ListTokens(grpc::CallbackServerContext* context,
                                                   const v1::ListTokensRequest* request,
                                                   v1::ListTokensResponse* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity = Admit(*backend_, *context, kListTokens, *request);
  if (!identity.ok()) {
    call.Finish(identity.status());
    return call.reactor;
  }
  backend_->queries->ListTokens([call](absl::StatusOr<std::vector<core::Token>> tokens) {
    if (!tokens.ok()) return call.Finish(tokens.status());
    for (const core::Token& token : *tokens)
      *call.response->add_tokens() = ToProto(token);
    call.Finish(absl::OkStatus());
  });
  return call.reactor;
}

grpc::ServerUnaryReactor* AdminService::RevokeToken(grpc::CallbackServerContext* context,
                                                    const v1::RevokeTokenRequest* request,
                                                    v1::Token* response) {
  return AskCore(
      *backend_, context, *request, response, kRevokeToken,
      [&](const auth::Identity&) -> absl::StatusOr<core::CommandBody> {
        ASSIGN_OR_RETURN(const core::TokenId token, ParseTokenName(request->name()));
        return core::RevokeToken{.token = token};
      },
      [](core::Reply reply, const auth::Identity&) {
        return absl::StatusOr<v1::Token>(ToProto(Expect<core::Token>(std::move(reply))));
      });
}

grpc::ServerUnaryReactor* AdminService::AddDataset(grpc::CallbackServerContext* context,
                                                   const v1::AddDatasetRequest* request,
                                                   v1::Dataset* response) {
  return AskCore(
      *backend_, context, *request, response, kAddDataset,
      [&](const auth::Identity&) -> absl::StatusOr<core::CommandBody> {
        ASSIGN_OR_RETURN(core::Dataset dataset, FromProto(request->dataset()));
        return core::AddDataset{.dataset = std::move(dataset)};
      },
      [](core::Reply reply, const auth::Identity&) {
        return absl::StatusOr<v1::Dataset>(ToProto(Expect<core::Dataset>(std::move(reply))));
      });
}

grpc::ServerUnaryReactor* AdminService::ListDatasets(grpc::CallbackServerContext* context,
                                                     const v1::ListDatasetsRequest* request,
                                                     v1::ListDatasetsResponse* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity =
      Admit(*backend_, *context, kListDatasets, *request);
  if (!identity.ok()) {
    call.Finish(identity.status());
    return call.reactor;
  }
  backend_->queries->ListDatasets([call](absl::StatusOr<std::vector<core::Dataset>> datasets) {
    if (!datasets.ok()) return call.Finish(datasets.status());
    for (const core::Dataset& dataset : *datasets)
      *call.response->add_datasets() = ToProto(dataset);
    call.Finish(absl::OkStatus());
  });
  return call.reactor;
}

grpc::ServerUnaryReactor* AdminService::RemoveDataset(grpc::CallbackServerContext* context,
                                                      const v1::RemoveDatasetRequest* request,
                                                      v1::Dataset* response) {
  return AskCore(
      *backend_, context, *request, response, kRemoveDataset,
      [&](const auth::Identity&) -> absl::StatusOr<core::CommandBody> {
        ASSIGN_OR_RETURN(const std::string dataset, ParseDatasetName(request->name()));
        return core::RemoveDataset{.dataset = dataset};
      },
      [](core::Reply reply, const auth::Identity&) {
        return absl::StatusOr<v1::Dataset>(ToProto(Expect<core::Dataset>(std::move(reply))));
      });
}

grpc::ServerUnaryReactor* AdminService::ListRounds(grpc::CallbackServerContext* context,
                                                   const v1::ListRoundsRequest* request,
                                                   v1::ListRoundsResponse* response) {
  const auto call = StartUnary(context, response);
  const absl::Status status = Admit(*backend_, *context, kListRounds, *request).status();
  if (status.ok()) {
    for (const runtime::RoundInfo& round : backend_->rules->Rounds())
      *response->add_rounds() = ToProto(round);
  }
  call.Finish(status);
  return call.reactor;
}

namespace {

// What `identity` is told. The public learns what serves it, and nothing of the facility.
v1::ServerInfo ToProtoFor(const Backend& backend, const auth::Identity& identity,
                          const core::ServerInfo& info) {
  v1::ServerInfo message;
  message.set_version(backend.version);
  message.set_principal(identity.principal);
  message.set_role(std::string(auth::RoleName(identity.role)));
  message.set_organization(identity.organization);
  message.set_submission_count(info.submission_count);
  message.set_web_url(backend.web_url);
  SetTime(absl::ToUnixMicros(backend.clock->Wall()), message.mutable_current_time());
  if (identity.role == auth::Role::kPublic) return message;
  message.set_event_seq(info.last_seq);
  SetTime(absl::ToUnixMicros(backend.start_time), message.mutable_start_time());
  message.set_worker_count(info.worker_count);
  if (backend.certificate_end_time != absl::InfinitePast())
    SetTime(absl::ToUnixMicros(backend.certificate_end_time),
            message.mutable_certificate_end_time());
  if (identity.role == auth::Role::kOperator) {
    message.set_data_directory(backend.data_directory);
    message.set_tcp_address(backend.tcp_address);
  }
  return message;
}

}  // namespace

grpc::ServerUnaryReactor* AdminService::GetServerInfo(grpc::CallbackServerContext* context,
                                                      const v1::GetServerInfoRequest* request,
                                                      v1::ServerInfo* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity =
      Admit(*backend_, *context, kGetServerInfo, *request);
  if (!identity.ok()) {
    call.Finish(identity.status());
    return call.reactor;
  }
  const auto tell = [this, call, identity = *identity](absl::StatusOr<core::Reply> reply) {
    if (!reply.ok()) return call.Finish(reply.status());
    const core::ServerInfo info = Expect<core::ServerInfo>(*std::move(reply));
    core::VisibleTo viewer = ViewerOf(*backend_, identity, kListSubmissions);
    if (viewer.sees_all)
      return call.Finish(absl::StatusOr<v1::ServerInfo>(ToProtoFor(*backend_, identity, info)));
    backend_->queries->CountSubmissions(
        std::move(viewer), [this, call, identity, info](absl::StatusOr<int64_t> count) {
          if (!count.ok()) return call.Finish(count.status());
          core::ServerInfo seen = info;
          seen.submission_count = *count;
          call.Finish(absl::StatusOr<v1::ServerInfo>(ToProtoFor(*backend_, identity, seen)));
        });
  };
  backend_->core->Post(CommandOf(*identity, core::GetServerInfo{}), tell);
  return call.reactor;
}

grpc::ServerUnaryReactor* AdminService::ListAudit(grpc::CallbackServerContext* context,
                                                  const v1::ListAuditRequest* request,
                                                  v1::ListAuditResponse* response) {
  const auto call = StartUnary(context, response);
  const absl::Status status = Admit(*backend_, *context, kListAudit, *request).status();
  if (!status.ok()) {
    call.Finish(status);
    return call.reactor;
  }
  core::AuditQuestion question{
      .is_newest_first = request->newest_first(),
      .after_seq = request->after_seq(),
      .principal = request->principal(),
      .object = request->object(),
      .since_us =
          request->since_time().seconds() * 1'000'000 + request->since_time().nanos() / 1000,
      .has_bodies = request->with_bodies(),
      .limit = request->page_size() == 0 ? core::kPageSizeDefault : request->page_size()};
  backend_->queries->Audit(std::move(question),
                           [call](const absl::StatusOr<std::vector<core::AuditRow>>& rows) {
                             if (!rows.ok()) return call.Finish(rows.status());
                             for (const core::AuditRow& row : *rows)
                               *call.response->add_entries() = ToAuditEntry(row);
                             call.Finish(absl::OkStatus());
                           });
  return call.reactor;
}

grpc::ServerWriteReactor<v1::VerifyStoreResponse>* AdminService::VerifyStore(
    grpc::CallbackServerContext* context, const v1::VerifyStoreRequest* request) {
  return NewVerification(backend_, Admit(*backend_, *context, kVerifyStore, *request).status(),
                         *request);
}

grpc::ServerWriteReactor<v1::BackUpStoreResponse>* AdminService::BackUpStore(
    grpc::CallbackServerContext* context, const v1::BackUpStoreRequest* request) {
  return NewBackup(backend_, Admit(*backend_, *context, kBackUpStore, *request), *request);
}

grpc::ServerWriteReactor<v1::PruneStoreResponse>* AdminService::PruneStore(
    grpc::CallbackServerContext* context, const v1::PruneStoreRequest* request) {
  return NewPruning(backend_, Admit(*backend_, *context, kPruneStore, *request), *request);
}

grpc::ServerUnaryReactor* AdminService::GetUsage(grpc::CallbackServerContext* context,
                                                 const v1::GetUsageRequest* request,
                                                 v1::StoreUsage* response) {
  const auto call = StartUnary(context, response);
  const absl::Status status = Admit(*backend_, *context, kGetUsage, *request).status();
  if (!status.ok()) {
    call.Finish(status);
    return call.reactor;
  }
  backend_->upkeep->MeasureUsage([call](const absl::StatusOr<core::StoreUsage>& usage) {
    call.Finish(Then(usage, [](const core::StoreUsage& measured) {
      return absl::StatusOr<v1::StoreUsage>(ToProto(measured));
    }));
  });
  return call.reactor;
}

}  // namespace assay::api
