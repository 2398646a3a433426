// The coordinator as a command sees it: blocking calls with deadlines, and messages that say what
// to do when nobody answers.

#ifndef CLI_CLIENT_H_
#define CLI_CLIENT_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/config.h"
#include "cli/environment.h"

#include "assay/v1/admin_service.grpc.pb.h"
#include "assay/v1/submission_service.grpc.pb.h"

#include "common/rpc/channel.h"
#include "common/rpc/status_grpc.h"

namespace assay::cli {

// Where the coordinator is, by the strongest setting that names a server or a socket; without any,
// the socket of a running `assay dev`, then the system's. UNAVAILABLE if there is none of them.
absl::StatusOr<Endpoint> ResolveEndpoint(const Environment& environment, const Config& config);

// Thread-safe.
class Client {
 public:
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const Endpoint& endpoint);

  v1::SubmissionService::Stub* submissions() const { return submissions_.get(); }
  v1::AdminService::Stub* admin() const { return admin_.get(); }
  const Endpoint& endpoint() const { return endpoint_; }

  // One call. The status has a message for people; UNAVAILABLE names the endpoint and the remedy.
  template <class Service, class Request, class Response>
  absl::StatusOr<Response> Call(Service* stub,
                                grpc::Status (Service::*method)(grpc::ClientContext*,
                                                                const Request&, Response*),
                                const Request& request,
                                absl::Duration timeout = kCallTimeout) const {
    grpc::ClientContext context;
    PrepareCall(endpoint_, timeout, &context);
    Response response;
    const grpc::Status status = (stub->*method)(&context, request, &response);
    if (!status.ok()) return Explain(FromGrpc(status));
    return response;
  }

  // As Call, but while the coordinator is away it is tried again for up to kRetryFor. Only for
  // requests that may arrive twice: reads, and those with a request_id.
  template <class Service, class Request, class Response>
  absl::StatusOr<Response> CallRetrying(Service* stub,
                                        grpc::Status (Service::*method)(grpc::ClientContext*,
                                                                        const Request&, Response*),
                                        const Request& request) const {
    const absl::Time deadline = absl::Now() + kRetryFor;
    while (true) {
      absl::StatusOr<Response> response = Call(stub, method, request);
      if (!absl::IsUnavailable(response.status()) || !WaitUntilReachable(deadline)) return response;
    }
  }

  // Blocks until the channel is connected. False if `deadline` passes first.
  bool WaitUntilReachable(absl::Time deadline) const;

  // `status` with what people need to know.
  absl::Status Explain(const absl::Status& status) const;

  static constexpr absl::Duration kCallTimeout = absl::Seconds(30);
  static constexpr absl::Duration kRetryFor = absl::Seconds(10);

 private:
  Client(Endpoint endpoint, std::shared_ptr<grpc::Channel> channel);

  const Endpoint endpoint_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::SubmissionService::Stub> submissions_;
  const std::unique_ptr<v1::AdminService::Stub> admin_;
};

}  // namespace assay::cli

#endif  // CLI_CLIENT_H_
