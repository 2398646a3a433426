// JSON for programs: every method of the coordinator as a POST, in the unary form of the Connect
// protocol (connectrpc.com/docs/protocol), by its descriptor alone.
//
//   POST /assay.v1.SubmissionService/GetSubmission
//   Content-Type: application/json
//   Authorization: Bearer assay_...      (without it: as the public)
//   {"name":"submissions/e-42"}
//
// Messages are protobuf's JSON: 64-bit numbers are strings, bytes base64, unknown members refused.
// A method that answers with a stream gives one object a line (application/x-ndjson) or, where
// Accept names text/event-stream, one a message; it has status 200, and ends with {"error":...} if
// it fails. Methods that take a stream, and those of agents, are not served. Cookies are ignored.

#ifndef SERVER_WEB_GATEWAY_H_
#define SERVER_WEB_GATEWAY_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

#include "server/web/account.h"
#include "server/web/http.h"
#include "server/web/rpc_stream.h"
#include "server/web/token_accounts.h"
#include "server/web/unary_calls.h"
#include "server/web/work_pool.h"

namespace assay::web {

// True for the path of a method, whether it exists or not: /assay.v1.SubmissionService/...
bool IsMethodPath(absl::string_view target);

// Thread-safe.
class Gateway {
 public:
  // Unary calls on their way: those of the public share a connection with its pages, over which the
  // coordinator takes 100 at a time.
  static constexpr size_t kCallsMax = 64;

  // All must outlive it. `coordinator` has no token; calls without one are those of `everybody`.
  Gateway(Endpoint coordinator, Account* everybody, WorkPool* pool, RpcStreams* streams,
          const Clock* clock);

  // Answers a request for which IsMethodPath. Does not block.
  void Handle(const std::shared_ptr<Exchange>& exchange);

  // Ends the calls on their way, and blocks until none is left. Idempotent.
  void Stop() { calls_.Stop(); }

 private:
  void Call(const google::protobuf::MethodDescriptor* method,
            const std::shared_ptr<Exchange>& exchange);

  Account* const everybody_;
  WorkPool* const pool_;
  RpcStreams* const streams_;
  TokenAccounts accounts_;
  UnaryCalls calls_;
};

}  // namespace assay::web

#endif  // SERVER_WEB_GATEWAY_H_
