// The verdict on a set of runs: its score and its convergence beside the reference's.

#ifndef SERVER_RUNTIME_SET_VERDICT_H_
#define SERVER_RUNTIME_SET_VERDICT_H_

#include <vector>

#include "common/rules/ruleset.h"
#include "server/core/types.h"
#include "server/runtime/rule_book.h"

namespace assay::runtime {

// As RuleBook::Score, by the rules of `round`. Pure.
Verdict JudgeSet(const core::Submission& submission, const std::vector<core::Run>& runs,
                 const rules::RuleSet& round);

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_SET_VERDICT_H_
