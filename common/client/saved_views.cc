#include "common/client/saved_views.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/client/history.h"
#include "common/client/message_json.h"
#include "common/client/suggest.h"
#include "common/history_fields.h"
#include "common/status.h"
#include "common/url.h"

namespace assay::client {
namespace {

std::string NameWithAuthor(const v1::View& view) {
  return absl::StrCat(view.author(), "/", view.name());
}

absl::Status NoSuchView(const std::string& name, const std::vector<v1::View>& views) {
  if (views.empty())
    return absl::NotFoundError(
        absl::StrCat("there is no view '", name, "': 'assay query FILTER --save NAME' makes one"));
  std::vector<std::string> names;
  for (const v1::View& view : views)
    names.push_back(view.name());
  return absl::NotFoundError(absl::StrCat("there is no view '", name, "'", DidYouMean(name, names),
                                          "; views: ", absl::StrJoin(names, ", ")));
}

Json ListJson(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts)
    list.push_back(text);
  return list;
}

}  // namespace

absl::StatusOr<std::vector<v1::View>> ListViews(const Client& client) {
  ASSIGN_OR_RETURN(const v1::ListViewsResponse answer, client.CallRetrying(v1::ListViewsRequest()));
  return std::vector<v1::View>(answer.views().begin(), answer.views().end());
}

absl::StatusOr<v1::View> FindView(const Client& client, const std::string& name) {
  ASSIGN_OR_RETURN(const v1::ServerInfo info, client.CallRetrying(v1::GetServerInfoRequest()));
  ASSIGN_OR_RETURN(const std::vector<v1::View> views, ListViews(client));
  std::vector<v1::View> found;
  for (const v1::View& view : views) {
    if (NameWithAuthor(view) == name) return view;
    if (view.name() != name) continue;
    if (view.author() == info.principal()) return view;
    found.push_back(view);
  }
  if (found.empty()) return NoSuchView(name, views);
  if (found.size() == 1) return found.front();
  std::vector<std::string> names;
  for (const v1::View& view : found)
    names.push_back(NameWithAuthor(view));
  return absl::InvalidArgumentError(absl::StrCat("several people share a view '", name,
                                                 "': say which, ", absl::StrJoin(names, " or ")));
}

v1::View ViewOfQuestion(const v1::QueryResultsRequest& question) {
  v1::View view;
  for (const HistoryKind kind : kHistoryKinds)
    if (ProtoOf(kind) == question.kind()) view.set_kind(std::string(ToString(kind)));
  view.set_filter(question.filter());
  view.set_order_by(question.order_by());
  *view.mutable_columns() = question.columns();
  *view.mutable_group_by() = question.group_by();
  *view.mutable_aggregates() = question.aggregates();
  return view;
}

v1::QueryResultsRequest QuestionOfView(const v1::View& view) {
  v1::QueryResultsRequest question;
  question.set_kind(ProtoOf(ParseHistoryKind(view.kind()).value_or(HistoryKind::kEntry)));
  question.set_filter(view.filter());
  question.set_order_by(view.order_by());
  *question.mutable_columns() = view.columns();
  *question.mutable_group_by() = view.group_by();
  *question.mutable_aggregates() = view.aggregates();
  return question;
}

std::string QueryPath(const v1::View& view) {
  std::string path = absl::StrCat("/query?filter=", EncodeUrl(view.filter()));
  const auto add = [&path](absl::string_view name, const std::string& value) {
    if (!value.empty()) absl::StrAppend(&path, "&", name, "=", EncodeUrl(value));
  };
  if (view.kind() != ToString(HistoryKind::kEntry)) add("kind", view.kind());
  add("order", view.order_by());
  add("columns", absl::StrJoin(view.columns(), ","));
  add("group_by", absl::StrJoin(view.group_by(), ","));
  add("aggregate", absl::StrJoin(view.aggregates(), ","));
  return path;
}

Json ViewJson(const v1::View& view) {
  Json json = {{"name", view.name()},
               {"author", view.author()},
               {"is_shared", view.is_shared()},
               {"kind", view.kind()},
               {"filter", view.filter()},
               {"order_by", view.order_by()},
               {"columns", ListJson(view.columns())},
               {"group_by", ListJson(view.group_by())},
               {"aggregates", ListJson(view.aggregates())}};
  json["saved"] = TimeText(view.save_time());
  return json;
}

}  // namespace assay::client
