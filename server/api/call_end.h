// How each call of the API has ended, for those who count.

#ifndef SERVER_API_CALL_END_H_
#define SERVER_API_CALL_END_H_

#include <grpcpp/support/server_interceptor.h>

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace assay::api {

// Told of every call of a method that there is, when its status is sent: also of those that were
// refused, and of those whose caller has gone. `method`: "assay.v1.AdminService/ListTokens". On any
// thread; must be thread-safe and quick.
using OnCallEnd = std::function<void(absl::string_view method, absl::StatusCode code)>;

// What grpc::ServerBuilder is given for it; nothing if `on_call_end` is empty.
std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>>
CallEndInterceptors(OnCallEnd on_call_end);

}  // namespace assay::api

#endif  // SERVER_API_CALL_END_H_
