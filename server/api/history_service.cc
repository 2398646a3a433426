#include "server/api/history_service.h"

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/api/convert.h"
#include "server/auth/permissions.h"

namespace assay::api {
namespace {

constexpr absl::string_view kQueryResults = "assay.v1.HistoryService/QueryResults";
constexpr absl::string_view kSaveView = "assay.v1.HistoryService/SaveView";
constexpr absl::string_view kListViews = "assay.v1.HistoryService/ListViews";
constexpr absl::string_view kRemoveView = "assay.v1.HistoryService/RemoveView";
constexpr absl::string_view kListWorkers = "assay.v1.AdminService/ListWorkers";

std::optional<HistoryKind> KindOf(v1::QueryResultsRequest::Kind kind) {
  switch (kind) {
    case v1::QueryResultsRequest::KIND_UNSPECIFIED:
    case v1::QueryResultsRequest::ENTRY:
      return HistoryKind::kEntry;
    case v1::QueryResultsRequest::RUN:
      return HistoryKind::kRun;
    case v1::QueryResultsRequest::FINDING:
      return HistoryKind::kFinding;
    case v1::QueryResultsRequest::WORKER:
      return HistoryKind::kWorker;
    case v1::QueryResultsRequest::HYPERPARAMETER:
      return HistoryKind::kHyperparameter;
    default:
      break;  // of a newer client
  }
  return std::nullopt;
}

v1::QueryColumn::Type ToProto(HistoryType type) {
  switch (type) {
    case HistoryType::kText:
      return v1::QueryColumn::TEXT;
    case HistoryType::kId:
      return v1::QueryColumn::ID;
    case HistoryType::kInteger:
      return v1::QueryColumn::INTEGER;
    case HistoryType::kNumber:
      return v1::QueryColumn::NUMBER;
    case HistoryType::kBool:
      return v1::QueryColumn::BOOL;
    case HistoryType::kTime:
      return v1::QueryColumn::TIME;
    case HistoryType::kTexts:
      return v1::QueryColumn::TEXTS;
    case HistoryType::kMap:
      return v1::QueryColumn::MIXED;
  }
  return v1::QueryColumn::TYPE_UNSPECIFIED;
}

v1::QueryValue ToProto(const core::HistoryValue& value) {
  v1::QueryValue proto;
  std::visit(
      [&proto](const auto& v) {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, bool>) proto.set_truth(v);
        if constexpr (std::is_same_v<V, int64_t>) proto.set_integer(v);
        if constexpr (std::is_same_v<V, double>) proto.set_number(v);
        if constexpr (std::is_same_v<V, std::string>) proto.set_text(v);
        if constexpr (std::is_same_v<V, absl::Time>)
          SetTime(absl::ToUnixMicros(v), proto.mutable_time());
        if constexpr (std::is_same_v<V, std::vector<std::string>>)
          for (const std::string& text : v)
            proto.mutable_texts()->add_texts(text);
      },
      value);
  return proto;
}

// A worker is nobody's entry: whoever may list them may ask for them.
absl::Status CheckKind(const auth::Identity& identity, HistoryKind kind) {
  return kind == HistoryKind::kWorker ? auth::CheckMethod(identity, kListWorkers)
                                      : absl::OkStatus();
}

}  // namespace

absl::StatusOr<core::HistoryQuestion> FromProto(const v1::QueryResultsRequest& request) {
  const std::optional<HistoryKind> kind = KindOf(request.kind());
  if (!kind.has_value())
    return absl::InvalidArgumentError(
        absl::StrCat("kind ", static_cast<int>(request.kind()),
                     " is none: ENTRY, RUN, FINDING, WORKER or HYPERPARAMETER"));
  return core::HistoryQuestion{
      .kind = *kind,
      .filter = request.filter(),
      .order_by = request.order_by(),
      .columns = {request.columns().begin(), request.columns().end()},
      .group_by = {request.group_by().begin(), request.group_by().end()},
      .aggregates = {request.aggregates().begin(), request.aggregates().end()},
      .page_size = request.page_size(),
      .page_token = request.page_token(),
      .viewer = {}};
}

v1::QueryResultsResponse ToProto(const core::HistoryAnswer& answer) {
  v1::QueryResultsResponse proto;
  for (const core::HistoryColumn& column : answer.columns) {
    v1::QueryColumn* const added = proto.add_columns();
    added->set_name(column.name);
    added->set_type(ToProto(column.type));
    added->set_unit(column.unit);
  }
  for (const std::vector<core::HistoryValue>& row : answer.rows) {
    v1::QueryRow* const added = proto.add_rows();
    for (const core::HistoryValue& value : row)
      *added->add_values() = ToProto(value);
  }
  proto.set_next_page_token(answer.next_page_token);
  proto.set_total_count(answer.total_count);
  proto.set_hidden_count(answer.hidden_count);
  proto.set_hidden_reason(answer.hidden_reason);
  proto.set_filter(answer.filter);
  return proto;
}

grpc::ServerUnaryReactor* HistoryService::QueryResults(grpc::CallbackServerContext* context,
                                                       const v1::QueryResultsRequest* request,
                                                       v1::QueryResultsResponse* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity =
      Admit(*backend_, *context, kQueryResults, *request);
  absl::StatusOr<core::HistoryQuestion> question =
      Then(identity, [&](const auth::Identity& who) -> absl::StatusOr<core::HistoryQuestion> {
        ASSIGN_OR_RETURN(core::HistoryQuestion read, FromProto(*request));
        RETURN_IF_ERROR(CheckKind(who, read.kind));
        read.viewer = auth::VisibleThrough(who, kQueryResults, backend_->clock->Wall());
        return read;
      });
  if (!question.ok()) {
    call.Finish(question.status());
    return call.reactor;
  }
  backend_->queries->AskHistory(*std::move(question),
                                [call](absl::StatusOr<core::HistoryAnswer> answer) {
                                  if (!answer.ok()) return call.Finish(answer.status());
                                  call.Finish(ToProto(*answer));
                                });
  return call.reactor;
}

grpc::ServerUnaryReactor* HistoryService::SaveView(grpc::CallbackServerContext* context,
                                                   const v1::SaveViewRequest* request,
                                                   v1::View* response) {
  return AskCore(
      *backend_, context, *request, response, kSaveView,
      [&](const auth::Identity&) -> absl::StatusOr<core::CommandBody> {
        return core::SaveView{.view = FromProto(request->view())};
      },
      [](core::Reply reply, const auth::Identity&) {
        return absl::StatusOr<v1::View>(ToProto(Expect<core::View>(std::move(reply))));
      });
}

grpc::ServerUnaryReactor* HistoryService::ListViews(grpc::CallbackServerContext* context,
                                                    const v1::ListViewsRequest* request,
                                                    v1::ListViewsResponse* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity = Admit(*backend_, *context, kListViews, *request);
  if (!identity.ok()) {
    call.Finish(identity.status());
    return call.reactor;
  }
  backend_->queries->ListViews(StandingOf(*identity), identity->principal,
                               [call](absl::StatusOr<std::vector<core::View>> views) {
                                 if (!views.ok()) return call.Finish(views.status());
                                 for (const core::View& view : *views)
                                   *call.response->add_views() = ToProto(view);
                                 call.Finish(absl::OkStatus());
                               });
  return call.reactor;
}

grpc::ServerUnaryReactor* HistoryService::RemoveView(grpc::CallbackServerContext* context,
                                                     const v1::RemoveViewRequest* request,
                                                     v1::View* response) {
  return AskCore(
      *backend_, context, *request, response, kRemoveView,
      [&](const auth::Identity&) -> absl::StatusOr<core::CommandBody> {
        return core::RemoveView{.name = request->name()};
      },
      [](core::Reply reply, const auth::Identity&) {
        return absl::StatusOr<v1::View>(ToProto(Expect<core::View>(std::move(reply))));
      });
}

}  // namespace assay::api
