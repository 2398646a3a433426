// Round 2.0 (2022): the rules of round 1.0 under another name.

#include "common/rules/rounds.h"

namespace assay::rules {

RuleSetData HpcV2_0() {
  RuleSetData data = HpcV1_0();
  data.name = "hpc-2.0.0";
  data.label = "MLPerf HPC v2.0";
  return data;
}

}  // namespace assay::rules
