#include "cli/history/history_view.h"

#include <string>

#include "absl/strings/str_cat.h"

#include "cli/command/context.h"
#include "common/client/saved_views.h"
#include "common/status.h"

namespace assay::cli {
namespace {

absl::StatusOr<ExitStatus> RunViewList(Context* context, const Arguments& /*arguments*/) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const std::vector<v1::View> views, client::ListViews(*client));
  ListView list{.schema = "assay.view/v1",
                .columns = {{"NAME", "name"},
                            {"AUTHOR", "author"},
                            {"SHARED", "is_shared", Format::kYesNo, 2},
                            {"KIND", "kind"},
                            {"FILTER", "filter"},
                            {"ORDER", "order_by", Format::kText, 3},
                            {"COLUMNS", "columns", Format::kWords, 4},
                            {"GROUPS", "group_by", Format::kWords, 5},
                            {"AGGREGATES", "aggregates", Format::kWords, 6},
                            {"SAVED", "saved", Format::kTime, 7}},
                .empty_text = "no views; 'assay query FILTER --save NAME' makes one"};
  for (const v1::View& view : views)
    list.items.push_back(client::ViewJson(view));
  RETURN_IF_ERROR(context->printer().List(list));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunViewRemove(Context* context, const Arguments& arguments) {
  v1::RemoveViewRequest request;
  request.set_name(arguments.Get("NAME"));
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::View view, client->Call(request));
  if (context->printer().IsJson()) {
    RETURN_IF_ERROR(
        context->printer().Show({.schema = "assay.view/v1", .value = client::ViewJson(view)}));
    return ExitStatus::kDone;
  }
  context->out() << "removed view " << view.name() << "\n";
  return ExitStatus::kDone;
}

}  // namespace

std::vector<Command> HistoryViewCommands() {
  return {{.path = "history view list",
           .summary = "questions that are kept under a name: yours, and those shared with you",
           .description = "Operators share with everybody, reviewers with reviewers and operators, "
                          "submitters with their organisation. What a view finds is what you may "
                          "see, whoever has saved it.",
           .examples = {{"assay history view list", ""},
                        {"assay query --view fast", "asks one of them"}},
           .run = RunViewList},
          {.path = "history view remove",
           .summary = "forget a view of yours",
           .positionals = {{.name = "NAME", .help = "as 'history view list' has it"}},
           .examples = {{"assay history view remove fast", ""}},
           .run = RunViewRemove}};
}

}  // namespace assay::cli
