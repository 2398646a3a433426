// The built-in rounds, one function per file. Use FindRuleSet (registry.h) to get one.

#ifndef COMMON_RULES_ROUNDS_H_
#define COMMON_RULES_ROUNDS_H_

#include "common/rules/ruleset.h"

namespace assay::rules {

RuleSetData HpcV0_7();
RuleSetData HpcV1_0();
RuleSetData HpcV2_0();
RuleSetData HpcV3_0();

}  // namespace assay::rules

#endif  // COMMON_RULES_ROUNDS_H_
