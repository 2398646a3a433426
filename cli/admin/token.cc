#include "cli/admin/token.h"

#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"

#include "cli/command/context.h"
#include "common/client/ids.h"
#include "common/client/resource_json.h"
#include "common/secret.h"
#include "common/status.h"

namespace assay::cli {
namespace {

using google::protobuf::util::TimeUtil;

absl::StatusOr<v1::CreateTokenResponse> CreateToken(Context* context, const Arguments& arguments,
                                                    v1::Token token) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  v1::CreateTokenRequest request;
  request.set_request_id(MakeUuid());
  *request.mutable_token() = std::move(token);
  ASSIGN_OR_RETURN(const absl::Duration lifetime,
                   arguments.Duration("lifetime", absl::ZeroDuration()));
  if (lifetime > absl::ZeroDuration())
    *request.mutable_lifetime() = TimeUtil::SecondsToDuration(absl::ToInt64Seconds(lifetime));
  return client->CallRetrying(request);
}

// The secret goes to stdout alone, so that it can be caught; everything else to stderr.
absl::StatusOr<ExitStatus> PrintSecret(Context* context, const v1::CreateTokenResponse& response,
                                       const std::string& next) {
  if (context->printer().IsJson()) {
    Json json = client::TokenJson(response.token());
    json["secret"] = response.secret();
    RETURN_IF_ERROR(context->printer().Show({.schema = "assay.token/v1", .value = json}));
    return ExitStatus::kDone;
  }
  context->out() << response.secret() << "\n";
  const std::string expires =
      response.token().has_expire_time()
          ? absl::StrCat(", valid until ",
                         context->printer().FormatField(
                             client::TimeText(response.token().expire_time()), Format::kTime))
          : "";
  context->Note(absl::StrCat("created ", client::ShortId(response.token().name()), " for ",
                             response.token().principal(), expires,
                             ". The secret is shown only now.\n", next));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunTokenCreate(Context* context, const Arguments& arguments) {
  v1::Token token;
  token.set_kind(v1::Token::ACCESS);
  token.set_principal(arguments.Get("principal"));
  token.set_role(arguments.Get("role"));
  token.set_organization(arguments.Get("organization"));
  if (token.role() == "submitter" && token.organization().empty()) {
    return absl::InvalidArgumentError(
        "a submitter acts for an organisation: say which with --organization ORG");
  }
  ASSIGN_OR_RETURN(const v1::CreateTokenResponse response, CreateToken(context, arguments, token));
  return PrintSecret(context, response,
                     "use it with ASSAY_TOKEN, or put it into a file and name that with "
                     "'assay config set token_file PATH'");
}

absl::StatusOr<ExitStatus> RunEnrol(Context* context, const Arguments& arguments) {
  v1::Token token;
  token.set_kind(v1::Token::ENROL);
  token.set_role("worker");
  token.set_principal(arguments.Get("NODE"));
  RETURN_IF_ERROR(client::WorkerName(token.principal()).status());
  ASSIGN_OR_RETURN(const v1::CreateTokenResponse response, CreateToken(context, arguments, token));
  return PrintSecret(context, response,
                     absl::StrCat("on the node, put it into the file that enrolment_token_path of "
                                  "worker.textproto names, with name: \"",
                                  token.principal(), "\", and start assay-worker"));
}

absl::StatusOr<ExitStatus> RunTokenList(Context* context, const Arguments&) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::ListTokensResponse response, client->Call(v1::ListTokensRequest()));
  ListView view{.schema = "assay.token/v1",
                .columns = {{"ID", "id"},
                            {"KIND", "kind", Format::kText, 2},
                            {"STATE", "state", Format::kState},
                            {"PRINCIPAL", "principal"},
                            {"ROLE", "role"},
                            {"ORG", "organization", Format::kText, 3},
                            {"EXPIRES", "expires", Format::kTime, 1},
                            {"CREATED", "created", Format::kTime, 4}},
                .empty_text = "no tokens; 'assay admin token create' makes one"};
  for (const v1::Token& token : response.tokens())
    view.items.push_back(client::TokenJson(token));
  RETURN_IF_ERROR(context->printer().List(view));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunTokenRevoke(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  const std::string id = arguments.Get("TOKEN");
  if (!absl::StartsWith(id, "t-"))
    return absl::InvalidArgumentError(
        absl::StrCat("'", id.substr(0, 4),
                     "...' is no token id; 'assay admin token list' shows "
                     "ids as t-7 (never give a secret here)"));
  v1::RevokeTokenRequest request;
  request.set_name(absl::StrCat("tokens/", id));
  ASSIGN_OR_RETURN(const v1::Token token, client->Call(request));
  if (context->printer().IsJson()) {
    RETURN_IF_ERROR(
        context->printer().Show({.schema = "assay.token/v1", .value = client::TokenJson(token)}));
    return ExitStatus::kDone;
  }
  context->out() << id << " of " << token.principal() << " is revoked: it opens nothing any more\n";
  return ExitStatus::kDone;
}

}  // namespace

std::vector<Command> TokenCommands() {
  const Option lifetime = {.name = "lifetime",
                           .kind = Option::Kind::kDuration,
                           .value = "DURATION",
                           .help = "how long it is valid (12h for access, 1h for enrolment)"};
  return {
      {.path = "admin token create",
       .summary = "make an access token for a person or a script",
       .description = "The secret is printed once, alone, on stdout.",
       .options = {{.name = "principal",
                    .kind = Option::Kind::kText,
                    .value = "NAME",
                    .help = "whom it stands for, as alice",
                    .is_required = true},
                   {.name = "role",
                    .kind = Option::Kind::kChoice,
                    .value = "ROLE",
                    .help = "public (reads what is published), submitter, reviewer or operator",
                    .choices = {"public", "submitter", "reviewer", "operator"},
                    .is_required = true},
                   {.name = "organization",
                    .kind = Option::Kind::kText,
                    .value = "ORG",
                    .help = "organisation that a submitter acts for"},
                   lifetime},
       .examples =
           {{"assay admin token create --principal alice --role submitter --organization CSCS", ""},
            {"assay admin token create --principal bob --role reviewer --lifetime 30d > token", ""},
            {"assay admin token create --principal web --role public --lifetime 365d > token",
             "a site that shows what is published to anybody"}},
       .run = RunTokenCreate},
      {.path = "admin token list",
       .summary = "list tokens, never their secrets",
       .examples = {{"assay admin token list", ""}},
       .run = RunTokenList},
      {.path = "admin token revoke",
       .summary = "make a token useless at once",
       .positionals = {{.name = "TOKEN", .help = "its id, as t-7"}},
       .examples = {{"assay admin token revoke t-7", ""}},
       .run = RunTokenRevoke},
      {.path = "admin enrol",
       .summary = "make a one-time token by which a new node joins",
       .positionals = {{.name = "NODE", .help = "name that the worker shall have"}},
       .options = {lifetime},
       .examples = {{"assay admin enrol n007 > enrol.token", ""}},
       .run = RunEnrol}};
}

}  // namespace assay::cli
