#include "server/web/gateway.h"

#include <grpcpp/support/slice.h>

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"

#include "assay/v1/admin_service.pb.h"
#include "assay/v1/submission_service.pb.h"

#include "common/status.h"
#include "server/web/answer.h"
#include "server/web/connect_error.h"

namespace assay::web {
namespace {

namespace pb = google::protobuf;

constexpr absl::string_view kPackage = "/assay.v1.";
constexpr absl::string_view kStreamHeartbeat = ": \n\n";

// Of agents, who show certificates of their own to the coordinator.
constexpr std::array<absl::string_view, 2> kNotServed = {"assay.v1.WorkerService",
                                                         "assay.v1.EnrolmentService"};

void SendError(Exchange* exchange, const absl::Status& status) {
  HttpResponse response{.status = ConnectHttpStatus(status.code()),
                        .headers = {{"Content-Type", "application/json"}},
                        .body = ConnectErrorJson(status)};
  // What is not served is not found, for HTTP (the protocol's table the other way round).
  if (absl::IsUnimplemented(status)) response.status = 404;
  if (absl::IsUnavailable(status)) response.headers.push_back({"Retry-After", "1"});
  response.headers.push_back({"Cache-Control", "no-store"});
  AddSecurityHeaders(&response);
  exchange->Send(std::move(response));
}

const pb::MethodDescriptor* FindMethod(absl::string_view path) {
  const std::vector<std::string> parts = absl::StrSplit(absl::StripPrefix(path, "/"), '/');
  if (parts.size() != 2) return nullptr;
  for (const absl::string_view name : kNotServed)
    if (parts[0] == name) return nullptr;
  // Linked in for certain, so that the pool knows them.
  v1::GetSubmissionRequest::descriptor();
  v1::GetServerInfoRequest::descriptor();
  const pb::ServiceDescriptor* const service =
      pb::DescriptorPool::generated_pool()->FindServiceByName(parts[0]);
  return service == nullptr ? nullptr : service->FindMethodByName(parts[1]);
}

bool IsJson(absl::string_view content_type) {
  const std::vector<absl::string_view> parts = absl::StrSplit(content_type, ';');
  if (absl::AsciiStrToLower(absl::StripAsciiWhitespace(parts[0])) != "application/json")
    return false;
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string parameter = absl::AsciiStrToLower(absl::StripAsciiWhitespace(parts[i]));
    if (absl::StartsWith(parameter, "charset=") && !absl::StrContains(parameter, "utf-8"))
      return false;
  }
  return true;
}

absl::StatusOr<grpc::ByteBuffer> ReadJson(const pb::Descriptor* type, absl::string_view json) {
  const std::unique_ptr<pb::Message> message(
      pb::MessageFactory::generated_factory()->GetPrototype(type)->New());
  const std::string text(absl::StripAsciiWhitespace(json));
  const auto parsed = pb::util::JsonStringToMessage(text.empty() ? "{}" : text, message.get());
  if (!parsed.ok())
    return absl::InvalidArgumentError(
        absl::StrCat("the body is no ", type->full_name(), ": ", std::string(parsed.message())));
  const grpc::Slice slice(message->SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

absl::StatusOr<std::string> WriteJson(const pb::Descriptor* type, grpc::ByteBuffer* buffer) {
  grpc::Slice slice;
  const std::unique_ptr<pb::Message> message(
      pb::MessageFactory::generated_factory()->GetPrototype(type)->New());
  std::string json;
  if (!buffer->DumpToSingleSlice(&slice).ok() ||
      !message->ParseFromArray(slice.begin(), static_cast<int>(slice.size())) ||
      !pb::util::MessageToJsonString(*message, &json).ok())
    return absl::InternalError(absl::StrCat("an answer cannot be read as ", type->full_name()));
  return json;
}

// The token of an Authorization header; empty if there is none. UNAUTHENTICATED for other schemes.
absl::StatusOr<std::string> TokenIn(absl::string_view authorization) {
  constexpr absl::string_view kScheme = "Bearer ";
  if (authorization.empty()) return std::string();
  if (!absl::StartsWithIgnoreCase(authorization, kScheme))
    return absl::UnauthenticatedError(
        "the Authorization header is of an unknown scheme: send \"Bearer <token>\"");
  return std::string(absl::StripAsciiWhitespace(authorization.substr(kScheme.size())));
}

std::string Line(const pb::Descriptor* type, bool is_sse, grpc::ByteBuffer* message) {
  const absl::StatusOr<std::string> json = WriteJson(type, message);
  const std::string text =
      json.ok() ? *json : absl::StrCat("{\"error\":", ConnectErrorJson(json.status()), "}");
  return is_sse ? absl::StrCat("data: ", text, "\n\n") : absl::StrCat(text, "\n");
}

std::string LastLine(bool is_sse, const absl::Status& status) {
  if (status.ok()) return is_sse ? "event: end\ndata: {}\n\n" : "";
  const std::string error = ConnectErrorJson(status);
  return is_sse ? absl::StrCat("event: failure\ndata: ", error, "\n\n")
                : absl::StrCat("{\"error\":", error, "}\n");
}

RpcStreamOptions StreamOptionsOf(const pb::MethodDescriptor* method, const HttpRequest& http) {
  const bool is_sse = absl::StrContains(http.Header("Accept"), "text/event-stream");
  RpcStreamOptions options{.method = http.target};
  options.head.headers = {{"Content-Type", is_sse ? "text/event-stream" : "application/x-ndjson"},
                          {"Cache-Control", "no-store"},
                          {"X-Accel-Buffering", "no"}};
  AddSecurityHeaders(&options.head);
  // An empty line between objects is none.
  options.heartbeat = is_sse ? std::string(kStreamHeartbeat) : "\n";
  options.format = [type = method->output_type(), is_sse](grpc::ByteBuffer* message) {
    return Line(type, is_sse, message);
  };
  options.end = [is_sse](const absl::Status& status) { return LastLine(is_sse, status); };
  return options;
}

}  // namespace

bool IsMethodPath(absl::string_view target) {
  return absl::StartsWith(target, kPackage);
}

Gateway::Gateway(Endpoint coordinator, Account* everybody, WorkPool* pool, RpcStreams* streams,
                 const Clock* clock)
    : everybody_(everybody),
      pool_(pool),
      streams_(streams),
      accounts_(std::move(coordinator), clock),
      calls_(kCallsMax) {}

void Gateway::Handle(const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& http = exchange->request();
  const pb::MethodDescriptor* const method = FindMethod(http.target);
  if (http.method != "POST") {
    HttpResponse response = PlainResponse(405, "methods take POST");
    response.headers.push_back({"Allow", "POST"});
    return exchange->Send(std::move(response));
  }
  if (method == nullptr)
    return SendError(exchange.get(), absl::UnimplementedError("there is no such method here"));
  if (method->client_streaming())
    return SendError(exchange.get(),
                     absl::UnimplementedError("methods that take a stream are for gRPC alone"));
  if (!IsJson(http.Header("Content-Type")))
    return exchange->Send(PlainResponse(415, "send application/json, in UTF-8"));
  if (!pool_->Add([this, method, exchange] { Call(method, exchange); }))
    SendError(exchange.get(), absl::UnavailableError("the site is busy: try again in a second"));
}

void Gateway::Call(const pb::MethodDescriptor* method, const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& http = exchange->request();
  const absl::StatusOr<std::string> token = TokenIn(http.Header("Authorization"));
  if (!token.ok()) return SendError(exchange.get(), token.status());
  absl::StatusOr<grpc::ByteBuffer> request = ReadJson(method->input_type(), http.body);
  if (!request.ok()) return SendError(exchange.get(), request.status());
  const absl::StatusOr<std::shared_ptr<const client::Client>> client =
      token->empty() ? everybody_->Client() : accounts_.ClientOf(*token);
  if (!client.ok()) return SendError(exchange.get(), client.status());
  const absl::Status busy = absl::UnavailableError("too many calls at once: try again in a second");
  if (method->server_streaming()) {
    RpcStreamOptions options = StreamOptionsOf(method, http);
    options.client = *client;
    options.request = *std::move(request);
    if (!streams_->Start(std::move(options), exchange)) SendError(exchange.get(), busy);
    return;
  }
  const auto done = [exchange, type = method->output_type()](const absl::Status& status,
                                                             grpc::ByteBuffer* response) {
    if (!status.ok()) return SendError(exchange.get(), status);
    absl::StatusOr<std::string> json = WriteJson(type, response);
    if (!json.ok()) return SendError(exchange.get(), json.status());
    exchange->Send(ToHttp(exchange->request(), Visitor{.principal = "program"},
                          {.content_type = "application/json", .body = *std::move(json)}));
  };
  if (!calls_.Start(*client, http.target, *std::move(request), done))
    SendError(exchange.get(), busy);
}

}  // namespace assay::web
