#include "server/web/live.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/slice.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "assay/v1/submission_service.pb.h"

#include "common/client/json.h"
#include "common/client/resource_json.h"
#include "common/client/stubs.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_grpc.h"
#include "common/status.h"
#include "server/web/answer.h"
#include "server/web/connect_error.h"

namespace assay::web {
namespace {

constexpr char kWatchRunEvents[] = "/assay.v1.SubmissionService/WatchRunEvents";
constexpr int kRetryMs = 3000;  // before a browser opens a stream again that has ended
constexpr absl::Duration kPollTimeout = absl::Seconds(10);

// A number of an event; 0 for no text.
absl::StatusOr<int64_t> ParseSeq(absl::string_view text) {
  int64_t seq = 0;
  if (text.empty() || (absl::SimpleAtoi(text, &seq) && seq >= 0)) return seq;
  return absl::InvalidArgumentError("after: is no number of an event");
}

v1::WatchRunEventsRequest WatchRequest(absl::string_view run, int64_t after_seq, bool follow) {
  v1::WatchRunEventsRequest request;
  request.set_run(absl::StrCat("runs/", run));
  request.set_after_seq(after_seq);
  request.set_follow(follow);
  return request;
}

std::string SseOf(grpc::ByteBuffer* buffer) {
  grpc::Slice slice;
  v1::RunEvent event;
  if (!buffer->DumpToSingleSlice(&slice).ok() ||
      !event.ParseFromArray(slice.begin(), static_cast<int>(slice.size())))
    return "";
  return absl::StrCat("id: ", event.seq(),
                      "\ndata: ", client::DumpSafely(client::RunEventJson(event), -1), "\n\n");
}

// What is worth another attempt ends without a word, and the browser makes it.
std::string SseEnd(const absl::Status& status) {
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
      absl::IsCancelled(status) || absl::IsResourceExhausted(status))
    return "";
  return absl::StrCat("event: end\ndata: ", status.ok() ? "{}" : ConnectErrorJson(status), "\n\n");
}

}  // namespace

std::optional<std::string> LiveRun(const Request& request) {
  const std::vector<std::string> parts = absl::StrSplit(request.path, '/');
  if (parts.size() != 4 || parts[1] != "runs" || parts[2].empty() || parts[3] != "live")
    return std::nullopt;
  return parts[2];
}

absl::StatusOr<RpcStreamOptions> LiveStream(const std::string& run, const HttpRequest& http,
                                            const Request& request) {
  const absl::string_view last = http.Header("Last-Event-ID");
  ASSIGN_OR_RETURN(const int64_t after,
                   ParseSeq(last.empty() ? request.query.First("after") : std::string(last)));
  const grpc::Slice slice(WatchRequest(run, after, /*follow=*/true).SerializeAsString());
  RpcStreamOptions options{.method = kWatchRunEvents, .request = grpc::ByteBuffer(&slice, 1)};
  options.head.headers = {{"Content-Type", "text/event-stream"},
                          {"Cache-Control", "no-store"},
                          {"X-Accel-Buffering", "no"}};
  AddSecurityHeaders(&options.head);
  options.heartbeat = absl::StrCat("retry: ", kRetryMs, "\n\n");
  options.format = SseOf;
  options.end = SseEnd;
  return options;
}

absl::StatusOr<Response> LiveEvents(const Context& context, const Request& request) {
  const std::string run = LiveRun(request).value_or("");
  ASSIGN_OR_RETURN(const int64_t after, ParseSeq(request.query.First("after")));
  v1::GetRunRequest get;
  get.set_name(absl::StrCat("runs/", run));
  ASSIGN_OR_RETURN(const v1::Run state, context.client.Call(get));
  grpc::ClientContext call;
  PrepareCall(context.client.endpoint(), kPollTimeout, &call);
  const auto reader = context.client.stubs().submissions->WatchRunEvents(
      &call, WatchRequest(run, after, /*follow=*/false));
  client::Json body;
  body["events"] = client::Json::array();
  v1::RunEvent event;
  while (body["events"].size() < kPollEventsMax && reader->Read(&event))
    body["events"].push_back(client::RunEventJson(event));
  const bool is_cut = body["events"].size() == kPollEventsMax;
  if (is_cut) call.TryCancel();
  const absl::Status status = FromGrpc(reader->Finish());
  if (!is_cut && !status.ok()) return context.client.Explain(status);
  body["ended"] = client::IsEnded(state.state()) && !is_cut;
  return Response{.content_type = "application/json", .body = client::DumpSafely(body, -1)};
}

}  // namespace assay::web
