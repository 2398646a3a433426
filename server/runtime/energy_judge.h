// What energy a run took, by the meters of its nodes.

#ifndef SERVER_RUNTIME_ENERGY_JUDGE_H_
#define SERVER_RUNTIME_ENERGY_JUDGE_H_

#include <vector>

#include "common/rules/run_clocks.h"
#include "server/core/types.h"
#include "server/store/artifacts.h"

namespace assay::runtime {

// Adds the energy from run_start to run_stop where every node of the gang has a meter: of whole
// nodes where all have one of that kind, else of their components. Without such meters it adds
// nothing. Warnings tell of meters that stood still or were set back, and of what a power entry
// would lack. Reads the telemetry of one node after the other; blocks for that. Thread-safe.
void JudgeEnergy(const core::Run& run, const rules::RunClocks& clocks,
                 const store::ArtifactStore& artifacts, core::RunFacts* facts);

// Adds to the energy of whole nodes what these switches draw in the run's time at their maximum
// ratings, and notes them. Other runs stay as they are: components have no power entry.
void ChargeSwitches(const std::vector<core::SwitchPower>& switches, core::RunFacts* facts);

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_ENERGY_JUDGE_H_
