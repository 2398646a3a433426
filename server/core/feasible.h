// What keeps the runs of a spec from ever starting, whatever the rules of its round say.

#ifndef SERVER_CORE_FEASIBLE_H_
#define SERVER_CORE_FEASIBLE_H_

#include <vector>

#include "server/core/types.h"

namespace assay::core {

// How its hyperparameters and its dataset go with its nodes and ranks (common/rules/ranks.h) and
// with the trainer (common/rules/trainer_settings.h); of somebody's own program whether it can be
// started (common/rules/programs.h).
// Values that are no JSON, and a dataset that is not registered, are others' business.
std::vector<Finding> CheckFeasible(const State& state, const SubmissionSpec& spec);

}  // namespace assay::core

#endif  // SERVER_CORE_FEASIBLE_H_
