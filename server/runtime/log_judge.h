// The verdict on one log: the checker's, and what the witnesses of the run say of its clock.

#ifndef SERVER_RUNTIME_LOG_JUDGE_H_
#define SERVER_RUNTIME_LOG_JUDGE_H_

#include <memory>

#include "common/rules/ruleset.h"
#include "server/runtime/rule_book.h"

namespace assay::runtime {

// By the rules of `round`, which the judge keeps.
std::unique_ptr<LogJudge> MakeLogJudge(std::shared_ptr<const rules::RuleSet> round);

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_LOG_JUDGE_H_
