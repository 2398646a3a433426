// What can be known of a submission before it is queued, but for the rules of its round.

#ifndef SERVER_CORE_JUDGEMENT_H_
#define SERVER_CORE_JUDGEMENT_H_

#include <vector>

#include "server/core/command.h"
#include "server/core/types.h"

namespace assay::core {

// The one judgement that who plans a submission hears and who submits it. What is an error refuses
// it: its texts and numbers, its dataset, its instances (common/rules/spec_rules.h), whether its
// runs could start (feasible.h), and whether the launcher could ever give what it asks for
// (lease.h).
std::vector<Finding> JudgeSpec(const State& state, const LauncherStarted& launcher,
                               const SubmissionSpec& spec);

}  // namespace assay::core

#endif  // SERVER_CORE_JUDGEMENT_H_
