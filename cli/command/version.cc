#include "cli/command/version.h"

#include "cli/command/context.h"
#include "common/status.h"

namespace assay::cli {
namespace {

absl::StatusOr<ExitStatus> RunVersion(Context* context, const Arguments& arguments) {
  Json json = {{"version", ASSAY_VERSION}};
  if (arguments.Has("with-server")) {
    ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
    ASSIGN_OR_RETURN(const v1::ServerInfo info, client->Call(v1::GetServerInfoRequest()));
    json["server"] = client->endpoint().target;
    json["server_version"] = info.version();
  }
  if (!context->printer().IsStructured() && !arguments.Has("with-server")) {
    context->out() << "assay " << ASSAY_VERSION << "\n";
    return ExitStatus::kDone;
  }
  RETURN_IF_ERROR(context->printer().Show(
      {.schema = "assay.version/v1",
       .value = json,
       .fields = {{"assay", "version"}, {"coordinator", "server_version"}, {"at", "server"}}}));
  return ExitStatus::kDone;
}

}  // namespace

std::vector<Command> VersionCommands() {
  return {{.path = "version",
           .summary = "print the version",
           .options = {{.name = "with-server", .help = "and the coordinator's"}},
           .examples = {{"assay version", ""}, {"assay version --with-server --json", ""}},
           .run = RunVersion}};
}

}  // namespace assay::cli
