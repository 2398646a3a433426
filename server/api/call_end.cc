#include "server/api/call_end.h"

#include <utility>

#include "absl/strings/strip.h"

namespace assay::api {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

// One call.
class CallEnd final : public grpc::experimental::Interceptor {
 public:
  CallEnd(const OnCallEnd* on_call_end, absl::string_view method)
      : on_call_end_(*on_call_end), method_(method) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS))
      on_call_end_(method_, static_cast<absl::StatusCode>(methods->GetSendStatus().error_code()));
    methods->Proceed();
  }

 private:
  const OnCallEnd& on_call_end_;
  const absl::string_view method_;  // gRPC's own text, which outlives the call
};

class CallEndFactory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallEndFactory(OnCallEnd on_call_end) : on_call_end_(std::move(on_call_end)) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    return new CallEnd(&on_call_end_, absl::StripPrefix(info->method(), "/"));
  }

 private:
  const OnCallEnd on_call_end_;
};

}  // namespace

std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>>
CallEndInterceptors(OnCallEnd on_call_end) {
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> factories;
  if (on_call_end) factories.push_back(std::make_unique<CallEndFactory>(std::move(on_call_end)));
  return factories;
}

}  // namespace assay::api
