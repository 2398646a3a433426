#include "cli/compare.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "cli/context.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr size_t kResourcesMax = 10;

struct Field {
  std::string name;
  std::string text;
};

void Flatten(const std::string& prefix, const Json& value, std::vector<Field>* fields) {
  for (const auto& [name, member] : value.items()) {
    const std::string path = absl::StrCat(prefix, name);
    if (member.is_object()) {
      Flatten(path + ".", member, fields);
    } else {
      fields->push_back({path, RawText(member)});
    }
  }
}

// What every resource has for itself, so that it tells nothing.
bool IsIdentity(const std::string& field) {
  static const auto* const kIdentities = new std::set<std::string>{
      "id", "set", "entry", "number", "runs", "created", "started", "ended", "artifacts"};
  return kIdentities->count(field) > 0;
}

absl::StatusOr<std::vector<Json>> Fetch(const client::Client& client,
                                        const std::vector<std::string>& ids) {
  const bool is_run = absl::StartsWith(ids[0], "r-");
  std::vector<Json> resources;
  for (const std::string& id : ids) {
    if (absl::StartsWith(id, "r-") != is_run)
      return absl::InvalidArgumentError(
          absl::StrCat("cannot compare ", ids[0], " with ", id,
                       ": give entries only (e-1 e-2) or runs only (r-1 r-2)"));
    if (is_run) {
      ASSIGN_OR_RETURN(const v1::Run run, client::GetRun(client, id));
      resources.push_back(client::RunJson(run));
    } else {
      ASSIGN_OR_RETURN(const v1::Submission entry, client::GetEntry(client, id));
      resources.push_back(client::EntryJson(entry));
    }
  }
  return resources;
}

absl::StatusOr<ExitStatus> RunCompare(Context* context, const Arguments& arguments) {
  const std::vector<std::string> ids = arguments.All("ID");
  if (ids.size() < 2 || ids.size() > kResourcesMax)
    return absl::InvalidArgumentError(
        absl::StrCat("compare takes 2 to ", kResourcesMax, " ids, not ", ids.size()));
  if (std::set<std::string>(ids.begin(), ids.end()).size() != ids.size())
    return absl::InvalidArgumentError("compare: an id is given twice");
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const std::vector<Json> resources, Fetch(*client, ids));
  ListView view{.schema = "assay.difference/v1",
                .items = CompareResources(ids, resources, arguments.Has("all")),
                .columns = {{"FIELD", "field"}},
                .empty_text = "no differences"};
  for (const std::string& id : ids)
    view.columns.push_back({id, id});
  RETURN_IF_ERROR(context->printer().List(view));
  const bool is_different = std::any_of(view.items.begin(), view.items.end(),
                                        [](const Json& row) { return row["differs"].get<bool>(); });
  return arguments.Has("exit-code") && is_different ? ExitStatus::kDifferent : ExitStatus::kDone;
}

}  // namespace

Json CompareResources(const std::vector<std::string>& ids, const std::vector<Json>& resources,
                      bool is_all) {
  std::vector<std::string> order;
  std::map<std::string, std::map<std::string, std::string>> texts;  // by field, then by id
  for (size_t i = 0; i < ids.size(); ++i) {
    std::vector<Field> fields;
    Flatten("", resources[i], &fields);
    for (Field& field : fields) {
      if (IsIdentity(field.name)) continue;
      if (texts.count(field.name) == 0) order.push_back(field.name);
      texts[field.name][ids[i]] = std::move(field.text);
    }
  }
  Json rows = Json::array();
  for (const std::string& field : order) {
    const std::map<std::string, std::string>& by_id = texts[field];
    const bool is_same = by_id.size() == ids.size() &&
                         std::all_of(by_id.begin(), by_id.end(), [&by_id](const auto& entry) {
                           return entry.second == by_id.begin()->second;
                         });
    if (is_same && !is_all) continue;
    Json row = {{"field", field}, {"differs", !is_same}};
    for (const auto& [id, text] : by_id)
      row[id] = text;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Command> CompareCommands() {
  return {{.path = "compare",
           .summary = "show what differs between entries or runs",
           .description = "One column per id, one line per field. Fields in which all agree are "
                          "left out, and so is what every resource has for itself: ids and dates.",
           .positionals = {{.name = "ID",
                            .help = "two to ten entries (e-42) or runs (r-901)",
                            .is_repeated = true}},
           .options = {{.name = "all", .help = "fields that agree too"},
                       {.name = "exit-code", .help = "exit status 10 if anything differs"}},
           .examples = {{"assay compare e-42 e-31", "what changed between two submissions"},
                        {"assay compare r-1 r-2 r-3", "why one run took longer"}},
           .run = RunCompare}};
}

}  // namespace assay::cli
