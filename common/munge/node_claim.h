// What an agent of a batch system's job says of itself in a munge credential (MungeCredential): of
// which job it is, on which node, and which certificate request is its own.

#ifndef COMMON_MUNGE_NODE_CLAIM_H_
#define COMMON_MUNGE_NODE_CLAIM_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace assay {

struct NodeClaim {
  std::string allocation;      // a-12
  std::string job;             // 4711
  std::string node;            // n0, as the batch system knows it
  std::string request_sha256;  // of the certificate request as it is sent; hexadecimal
  bool operator==(const NodeClaim&) const = default;
};

// The payload: lines, of which the first says what it is and of which version.
std::string NodeClaimText(const NodeClaim& claim);

// PERMISSION_DENIED for a payload of another kind or version.
absl::StatusOr<NodeClaim> ParseNodeClaim(absl::string_view text);

}  // namespace assay

#endif  // COMMON_MUNGE_NODE_CLAIM_H_
