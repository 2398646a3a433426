// Decisions about tokens and datasets, and internal facts that concern no submission.

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/core/decide.h"

namespace assay::core {
namespace {

constexpr absl::string_view kRoles[] = {"public", "submitter", "reviewer", "operator", "worker"};

absl::Status CheckToken(const CreateToken& command, int64_t now_us) {
  if (std::find(std::begin(kRoles), std::end(kRoles), command.role) == std::end(kRoles))
    return absl::InvalidArgumentError(
        absl::StrCat("role: expected public, submitter, reviewer, operator or worker, found \"",
                     command.role, "\""));
  const bool is_enrolment = command.kind == TokenKind::kEnrol;
  if (is_enrolment != (command.role == "worker"))
    return absl::InvalidArgumentError("an ENROL token has the role worker, and no other has it");
  if (!is_enrolment && command.principal.empty())
    return absl::InvalidArgumentError("principal is missing: whom does the token stand for?");
  if (command.role == "submitter" && command.organization.empty())
    return absl::InvalidArgumentError("organization is missing: a submitter belongs to one");
  if (command.secret_sha256.size() != 64)
    return absl::InternalError("secret_sha256 is no SHA-256 in hexadecimal");
  if (command.expires_at_us <= now_us)
    return absl::InvalidArgumentError("the token would have expired already");
  return absl::OkStatus();
}

const Token* FindSecret(const State& state, const std::string& sha256) {
  const auto it =
      std::find_if(state.tokens.begin(), state.tokens.end(),
                   [&sha256](const auto& entry) { return entry.second.secret_sha256 == sha256; });
  return it == state.tokens.end() ? nullptr : &it->second;
}

bool IsUseless(const Token& token, int64_t now_us) {
  return token.is_revoked || token.expires_at_us <= now_us;
}

// With which token one that is made by `sha256` ends: a session that a session has opened ends with
// the token that opened the first. None if `sha256` is empty.
absl::StatusOr<TokenId> OriginOf(const Context& context, const std::string& sha256) {
  if (sha256.empty()) return TokenId{};
  const Token* const maker = FindSecret(context.state, sha256);
  if (maker == nullptr || IsUseless(*maker, context.now_us))
    return absl::UnauthenticatedError("the token by which this one is asked for has ended");
  return maker->made_by.is_none() ? maker->id : maker->made_by;
}

bool IsInUse(const State& state, const std::string& dataset) {
  return std::any_of(
      state.submissions.begin(), state.submissions.end(), [&dataset](const auto& entry) {
        return !IsTerminal(entry.second.state) && entry.second.spec.dataset == dataset;
      });
}

}  // namespace

absl::StatusOr<Decision> Decide(const Context& context, const CreateToken& command) {
  const State& state = context.state;
  RETURN_IF_ERROR(CheckToken(command, context.now_us));
  ASSIGN_OR_RETURN(const TokenId origin, OriginOf(context, command.made_by_sha256));
  const auto made = state.requests.find({context.standing, context.principal, command.request_id});
  if (!command.request_id.empty() && made != state.requests.end())
    return absl::AlreadyExistsError(absl::StrCat(
        "request_id ", command.request_id, " has made ", made->second.made,
        "; its secret was in the first reply: if that is lost, revoke it and create another"));
  Token token;
  token.id = TokenId{state.last_token + 1};
  token.kind = command.kind;
  token.role = command.role;
  token.principal = command.principal;
  token.organization = command.organization;
  token.secret_sha256 = command.secret_sha256;
  token.created_at_us = context.now_us;
  token.expires_at_us = command.expires_at_us;
  token.made_by = origin;
  Decision decision{.reply = token};
  decision.events.push_back(TokenCreated{
      .request_id = command.request_id, .token = std::move(token), .standing = context.standing});
  return decision;
}

absl::StatusOr<Decision> Decide(const Context& context, const RevokeToken& command) {
  const auto it = context.state.tokens.find(command.token);
  if (it == context.state.tokens.end())
    return absl::NotFoundError(absl::StrCat("there is no token ", command.token.ToString()));
  Token token = it->second;
  Decision decision;
  for (const auto& [id, other] : context.state.tokens) {
    if ((id == command.token || other.made_by == command.token) && !other.is_revoked)
      decision.events.push_back(TokenRevoked{.token = id});
  }
  token.is_revoked = true;
  decision.reply = std::move(token);
  return decision;
}

absl::StatusOr<Decision> Decide(const Context& context, const RedeemEnrolment& command) {
  RETURN_IF_ERROR(CheckName("worker", command.worker));
  const Token* const found = FindSecret(context.state, command.secret_sha256);
  // One message for all: who guesses learns nothing.
  const absl::Status refused =
      absl::PermissionDeniedError("the enrolment token is unknown, used or expired");
  if (found == nullptr || found->kind != TokenKind::kEnrol || IsUseless(*found, context.now_us))
    return refused;
  Token token = *found;
  if (!token.principal.empty() && token.principal != command.worker)
    return absl::PermissionDeniedError(
        absl::StrCat("the enrolment token is not for worker ", command.worker));
  Decision decision;
  decision.events.push_back(TokenRevoked{.token = token.id, .worker = command.worker});
  token.is_revoked = true;
  decision.reply = std::move(token);
  return decision;
}

absl::StatusOr<Decision> Decide(const Context& context, const AddDataset& command) {
  const Dataset& dataset = command.dataset;
  RETURN_IF_ERROR(CheckName("dataset", dataset.id));
  if (dataset.benchmark.empty())
    return absl::InvalidArgumentError("benchmark is missing: what is the dataset for?");
  if (!absl::StartsWith(dataset.path, "/"))
    return absl::InvalidArgumentError(
        absl::StrCat("path: expected an absolute one, found \"", dataset.path, "\""));
  const auto it = context.state.datasets.find(dataset.id);
  Decision decision{.reply = dataset};
  if (it == context.state.datasets.end()) {
    decision.events.push_back(DatasetAdded{.dataset = dataset});
  } else if (!(it->second == dataset)) {
    return absl::AlreadyExistsError(absl::StrCat("dataset ", dataset.id,
                                                 " is registered with other properties; remove it "
                                                 "first, or choose another id"));
  }
  return decision;
}

absl::StatusOr<Decision> Decide(const Context& context, const RemoveDataset& command) {
  const auto it = context.state.datasets.find(command.dataset);
  if (it == context.state.datasets.end())
    return absl::NotFoundError(absl::StrCat("there is no dataset ", command.dataset));
  if (IsInUse(context.state, command.dataset))
    return absl::FailedPreconditionError(
        absl::StrCat("dataset ", command.dataset, " is used by an open submission"));
  Decision decision{.reply = it->second};
  decision.events.push_back(DatasetRemoved{.dataset = command.dataset});
  return decision;
}

absl::StatusOr<Decision> Decide(const Context&, const Tick&) {
  return Decision{.reply = Done{}};
}

}  // namespace assay::core
