#include "cli/entry/compare.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

#include "cli/command/context.h"
#include "common/client/comparison.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr size_t kResourcesMax = 10;

absl::StatusOr<ExitStatus> RunCompare(Context* context, const Arguments& arguments) {
  const std::vector<std::string> ids = arguments.All("ID");
  if (ids.size() < 2 || ids.size() > kResourcesMax)
    return absl::InvalidArgumentError(
        absl::StrCat("compare takes 2 to ", kResourcesMax, " ids, not ", ids.size()));
  if (std::set<std::string>(ids.begin(), ids.end()).size() != ids.size())
    return absl::InvalidArgumentError("compare: an id is given twice");
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const std::vector<Json> resources, client::ReadForComparison(*client, ids));
  ListView view{.schema = "assay.difference/v1",
                .items = client::CompareResources(ids, resources, arguments.Has("all")),
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
