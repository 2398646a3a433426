// The bill of materials of a run of somebody else's program: what went into it on this node. Equal
// for all runs of a set, on all that is equal; the coordinator warns where it is not (R-SET-002).

#ifndef WORKER_AGENT_MATERIALS_H_
#define WORKER_AGENT_MATERIALS_H_

#include <string>

#include "absl/strings/string_view.h"

#include "assay/v1/run_spec.pb.h"

#include "worker/agent/isolation.h"

namespace assay::agent {

// As a JSON object: contract, command, launcher, env, source, image, dataset, isolation,
// `limits` (who limits memory and processes), kernel, drivers, agent (`version`). Nothing of a
// single run is in it, and no secret: `env` is the submission's.
std::string MaterialsJson(const v1::RunSpec& spec, Isolation isolation, absl::string_view limits,
                          absl::string_view version);

}  // namespace assay::agent

#endif  // WORKER_AGENT_MATERIALS_H_
