// What a run's record says of the pre-flight that its node has passed.

#ifndef WORKER_AGENT_PREFLIGHT_RECORD_H_
#define WORKER_AGENT_PREFLIGHT_RECORD_H_

#include <string>

#include "absl/strings/string_view.h"

#include "assay/v1/resources.pb.h"

namespace assay::agent {

// As JSON, for people and programs: {"node": "n0", "submission": "submissions/e-1", ..., "checks":
// [{"check": "memory", "policy": "GATE", "is_measured": true, "value": 12.5, "unit": "GB/s",
// ...}]}. `median` is there where the value was compared with one.
std::string PreflightRecord(absl::string_view node, const v1::Preflight& preflight);

}  // namespace assay::agent

#endif  // WORKER_AGENT_PREFLIGHT_RECORD_H_
