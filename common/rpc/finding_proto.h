// Findings as messages of the API and back: what the rules say, to whoever asks over the network.

#ifndef COMMON_RPC_FINDING_PROTO_H_
#define COMMON_RPC_FINDING_PROTO_H_

#include "assay/v1/resources.pb.h"

#include "common/rules/finding.h"

namespace assay {

// Without the section of the rules document, which the message does not have: `assay rules explain`
// tells it for the rule.
v1::Finding FindingToProto(const rules::Finding& finding);

// A severity that is not set is an error.
rules::Finding FindingFromProto(const v1::Finding& message);

}  // namespace assay

#endif  // COMMON_RPC_FINDING_PROTO_H_
