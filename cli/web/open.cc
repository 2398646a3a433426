#include "cli/web/open.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "cli/command/context.h"
#include "common/client/resource_json.h"
#include "common/status.h"

namespace assay::cli {
namespace {

absl::StatusOr<ExitStatus> RunWebOpen(Context* context, const Arguments& arguments) {
  const std::string site = arguments.Get("url");
  if (!site.empty() && !absl::StartsWith(site, "https://"))
    return absl::InvalidArgumentError(
        absl::StrCat("--url: \"", site, "\" does not begin with https://"));
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const SignInLink link, MakeSignInLink(*client, site));
  if (context->printer().IsJson()) {
    Json json;
    json["url"] = link.url;
    json["expires"] = link.expire_time;
    RETURN_IF_ERROR(context->printer().Show({.schema = "assay.web_link/v1", .value = json}));
    return ExitStatus::kDone;
  }
  context->out() << link.url << "\n";
  context->Note("works once, within a minute; who has it signs in as you");
  return ExitStatus::kDone;
}

}  // namespace

absl::StatusOr<SignInLink> MakeSignInLink(const client::Client& client, const std::string& site) {
  ASSIGN_OR_RETURN(const v1::CreateWebCodeResponse made, client.Call(v1::CreateWebCodeRequest()));
  const std::string& origin = site.empty() ? made.url() : site;
  if (origin.empty()) {
    return absl::FailedPreconditionError(
        "the coordinator does not say where its site is: give --url https://HOST, or let its "
        "operator set web_url in assayd.textproto");
  }
  return SignInLink{
      .url = absl::StrCat(absl::StripSuffix(origin, "/"), "/signin?code=", made.code()),
      .expire_time = client::TimeText(made.expire_time())};
}

std::vector<Command> WebCommands() {
  return {
      {.path = "web open",
       .summary = "print a link that signs your browser in to the site",
       .description = "The link has a code that works once, within a minute. The session that "
                      "it opens is yours: of your role and organisation, for at most 12 hours, "
                      "and never longer than your token.",
       .options = {{.name = "url",
                    .kind = Option::Kind::kText,
                    .value = "URL",
                    .help = "https://HOST of the site (default: what the coordinator says)"}},
       .examples = {{"assay web open", ""}, {"assay web open --url https://bench.example.org", ""}},
       .run = RunWebOpen}};
}

}  // namespace assay::cli
