#include "cli/history/history_alias.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "cli/command/context.h"
#include "cli/entry/entry.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/set_history.h"
#include "common/secret.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr int64_t kAliasEntriesMax = 100'000;

using analysis::NameAlias;

// The newest entry that bears the name.
absl::StatusOr<v1::Submission> FindBearer(const client::Client& client, const NameAlias& alias) {
  v1::ListSubmissionsRequest request;
  if (alias.kind == NameAlias::Kind::kOrganization)
    request.set_organization(alias.name);
  else
    request.set_system(alias.name);
  ASSIGN_OR_RETURN(const std::vector<v1::Submission> entries,
                   client::ListEntries(client, request, 1));
  if (entries.empty())
    return absl::NotFoundError(absl::StrCat("no entry that you may see has the ",
                                            NameOf(alias.kind), " '", alias.name,
                                            "': names are compared letter by letter"));
  return entries.front();
}

absl::StatusOr<ExitStatus> SayAlias(Context* context, const NameAlias& alias) {
  v1::NoteSubmissionRequest request;
  ASSIGN_OR_RETURN(*request.mutable_text(), NoteText(alias));
  request.set_request_id(MakeUuid());
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::Submission bearer, FindBearer(*client, alias));
  request.set_name(bearer.name());
  ASSIGN_OR_RETURN(const v1::Submission entry, client->CallRetrying(request));
  const std::string id = client::ShortId(entry.name());
  const v1::Note& note = *entry.notes().rbegin();
  RETURN_IF_ERROR(
      ShowChanged(context, entry, absl::StrCat("noted on ", id, ", which bears the name"),
                  alias.kind == NameAlias::Kind::kOrganization && !note.organization().empty()
                      ? "it has no effect: only reviewers and operators rename organisations"
                      : "see: assay history alias list"));
  return ExitStatus::kDone;
}

absl::StatusOr<NameAlias> AliasFrom(const Arguments& arguments) {
  NameAlias alias = {.name = arguments.Get("NAME"),
                     .known_as = arguments.Has("KNOWN_AS") ? arguments.Get("KNOWN_AS") : "",
                     .reason = arguments.Get("reason")};
  const std::string kind = arguments.Get("KIND");
  if (kind != "organization" && kind != "system")
    return absl::InvalidArgumentError(
        absl::StrCat("an alias is of an organization or a system, not of '", kind, "'"));
  alias.kind = kind == "system" ? NameAlias::Kind::kSystem : NameAlias::Kind::kOrganization;
  return alias;
}

absl::StatusOr<ExitStatus> RunAliasAdd(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const NameAlias alias, AliasFrom(arguments));
  if (alias.known_as.empty())
    return absl::InvalidArgumentError("KNOWN_AS is empty; 'history alias remove' withdraws one");
  return SayAlias(context, alias);
}

absl::StatusOr<ExitStatus> RunAliasRemove(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const NameAlias alias, AliasFrom(arguments));
  return SayAlias(context, alias);
}

absl::StatusOr<ExitStatus> RunAliasList(Context* context, const Arguments& /*arguments*/) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const std::vector<v1::Submission> entries,
                   client::ListEntries(*client, {}, kAliasEntriesMax));
  std::vector<analysis::NotedEntry> noted;
  for (const v1::Submission& entry : entries)
    if (!entry.notes().empty()) noted.push_back(client::NotedEntryOf(entry));
  ListView view{.schema = "assay.alias/v1",
                .columns = {{"KIND", "kind"},
                            {"NAME", "name"},
                            {"KNOWN AS", "known_as"},
                            {"AUTHOR", "author"},
                            {"TIME", "time", Format::kTime, 2},
                            {"REASON", "reason", Format::kText, 1}},
                .empty_text = "no aliases; 'assay history alias add' makes one"};
  for (const NameAlias& alias : analysis::Aliases(noted).All())
    view.items.push_back(client::AliasJson(alias));
  RETURN_IF_ERROR(context->printer().List(view));
  return ExitStatus::kDone;
}

std::vector<Positional> AliasPositionals() {
  return {{.name = "KIND", .help = "organization or system"},
          {.name = "NAME", .help = "as the entries have it"}};
}

std::vector<Option> ReasonOptions() {
  return {{.name = "reason",
           .kind = Option::Kind::kText,
           .value = "TEXT",
           .help = "for those who read it years later",
           .is_required = true}};
}

}  // namespace

std::vector<Command> HistoryAliasCommands() {
  std::vector<Positional> add = AliasPositionals();
  add.push_back({.name = "KNOWN_AS", .help = "the name under which trends list them"});
  return {
      {.path = "history alias add",
       .summary = "have an organisation or a system known under another name",
       .description =
           "For trends; entries keep their name. It is a note of the newest entry that bears "
           "the name, with author and time, and holds for systems of that entry's organisation. "
           "Submitters may rename their own systems; reviewers and operators organisations too.",
       .positionals = add,
       .options = ReasonOptions(),
       .examples = {{"assay history alias add system frontera-rtx Frontera --reason 'one "
                     "machine'",
                     ""},
                    {"assay history alias add organization tacc TACC --reason 'spelling'", ""}},
       .run = RunAliasAdd},
      {.path = "history alias list",
       .summary = "names that mean the same, with who says so",
       .examples = {{"assay history alias list -o csv", ""}},
       .run = RunAliasList},
      {.path = "history alias remove",
       .summary = "withdraw an alias",
       .positionals = AliasPositionals(),
       .options = ReasonOptions(),
       .examples = {{"assay history alias remove system frontera-rtx --reason 'two machines'", ""}},
       .run = RunAliasRemove}};
}

}  // namespace assay::cli
