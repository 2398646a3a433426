// What is asked of an agent of a batch system's job that shows a munge credential instead of a
// token, before the core says whether its job runs (core::EnrolNode).

#ifndef SERVER_API_NODE_ENROLMENT_H_
#define SERVER_API_NODE_ENROLMENT_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include "common/munge/munge.h"
#include "common/munge/node_claim.h"
#include "server/runtime/task_thread.h"

namespace assay::api {

struct NodeEnrolmentOptions {
  uid_t uid = 0;  // as whom the jobs of this coordinator run
  // Opens a credential: MungeDecode, with the socket of this host's munged.
  std::function<absl::StatusOr<MungeCredential>(const std::string& credential)> open;
  // The IPv4 addresses of a node, as this host knows it by name; none: it does not.
  std::function<std::vector<std::string>(const std::string& node)> addresses_of;
};

// The addresses that this host's resolver has for `host`. Blocks.
std::vector<std::string> AddressesOf(const std::string& host);

// What the credential that came with this certificate request says. PERMISSION_DENIED if it cannot
// be opened, is of another user, is for another request or was made elsewhere than on the node that
// it names; UNAVAILABLE if munged does not answer. Where it was made is not known, and passes, if
// munged has said a loopback address or none, or this host does not know the node by name. Blocks.
absl::StatusOr<NodeClaim> CheckCredential(const NodeEnrolmentOptions& options,
                                          const std::string& credential,
                                          const std::string& csr_pem);

// Thread-safe. Has a thread of its own, since munged and the resolver take their time.
class NodeEnrolment {
 public:
  using OnClaim = absl::AnyInvocable<void(absl::StatusOr<NodeClaim>)>;

  explicit NodeEnrolment(NodeEnrolmentOptions options);

  // CheckCredential on that thread, on which `on_claim` is called; at once, with UNAVAILABLE, if
  // too many wait.
  void Check(const std::string& credential, const std::string& csr_pem, OnClaim on_claim);

  // Answers those that wait; later ones are refused. Idempotent.
  void Stop() { thread_.Stop(); }

 private:
  const NodeEnrolmentOptions options_;
  runtime::TaskThread thread_;
};

}  // namespace assay::api

#endif  // SERVER_API_NODE_ENROLMENT_H_
