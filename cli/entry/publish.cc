#include "cli/entry/publish.h"

#include "absl/strings/str_cat.h"

#include "cli/command/context.h"
#include "cli/terminal/resource_columns.h"
#include "common/client/client.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/status.h"

namespace assay::cli {
namespace {

absl::StatusOr<ExitStatus> RunPublish(Context* context, const Arguments& arguments) {
  v1::PublishSubmissionRequest request;
  if (arguments.Has("at")) {
    ASSIGN_OR_RETURN(const absl::Time at, ParseMoment("--at", arguments.Get("at")));
    request.mutable_publish_time()->set_seconds(absl::ToUnixSeconds(at));
  }
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ListView view{.schema = "assay.entry/v1", .columns = EntryColumns()};
  for (const std::string& id : arguments.All("ID")) {
    ASSIGN_OR_RETURN(*request.mutable_name(), client::EntryName(*client, id));
    ASSIGN_OR_RETURN(const v1::Submission entry, client->CallRetrying(request));
    view.items.push_back(client::EntryJson(entry));
    if (!context->printer().IsStructured())
      context->out() << client::ShortId(entry.name()) << " is published from "
                     << absl::FormatTime(absl::RFC3339_sec,
                                         absl::FromUnixSeconds(entry.publish_time().seconds()),
                                         absl::UTCTimeZone())
                     << " on\n";
  }
  if (context->printer().IsStructured()) RETURN_IF_ERROR(context->printer().List(view));
  context->Note("anybody may see it from then on, with its runs and their logs, and for ever");
  return ExitStatus::kDone;
}

}  // namespace

absl::StatusOr<absl::Time> ParseMoment(const std::string& option, const std::string& text) {
  absl::Time time;
  std::string error;
  const bool is_read = absl::ParseTime("%Y-%m-%d", text, absl::UTCTimeZone(), &time, &error) ||
                       absl::ParseTime(absl::RFC3339_full, text, &time, &error);
  if (is_read && time > absl::UnixEpoch() && time < absl::FromUnixSeconds(253'402'300'800))
    return time;
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": expected a day as 2020-11-18 or a moment as 2020-11-18T17:00:00Z, ",
                   "found \"", text, "\""));
}

std::vector<Command> PublishCommands() {
  return {{.path = "entry publish",
           .summary = "let anybody see an entry that has ended, for ever",
           .description =
               "Other organisations and the public see it with its scores, runs and logs, without "
               "names of people, notes and nodes. For operators. It cannot be taken back; a time "
               "that has not come yet can be changed.",
           .positionals = {{.name = "ID",
                            .help = "e-42 or @last",
                            .is_repeated = true,
                            .completes = Completes::kEntry}},
           .options = {{.name = "at",
                        .kind = Option::Kind::kText,
                        .value = "TIME",
                        .help = "from when on: 2026-11-18 or 2026-11-18T17:00:00Z; else from now"}},
           .examples = {{"assay entry publish e-42", ""},
                        {"assay entry publish e-42 e-43 --at 2026-11-18T17:00:00Z",
                         "when the round is announced"}},
           .run = RunPublish}};
}

}  // namespace assay::cli
