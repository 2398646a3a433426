#include "common/munge/node_claim.h"

#include <array>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace assay {
namespace {

// So that a credential which somebody made for another purpose says nothing here.
constexpr absl::string_view kKind = "assay node enrolment 1";
constexpr size_t kLines = 5;

}  // namespace

std::string NodeClaimText(const NodeClaim& claim) {
  const std::array<absl::string_view, kLines> lines = {kKind, claim.allocation, claim.job,
                                                       claim.node, claim.request_sha256};
  return absl::StrJoin(lines, "\n");
}

absl::StatusOr<NodeClaim> ParseNodeClaim(absl::string_view text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (lines.size() != kLines || lines[0] != kKind)
    return absl::PermissionDeniedError(
        absl::StrCat("the munge credential is not of the kind \"", kKind,
                     "\": give the nodes the assay-worker of this coordinator's version"));
  return NodeClaim{
      .allocation = lines[1], .job = lines[2], .node = lines[3], .request_sha256 = lines[4]};
}

}  // namespace assay
