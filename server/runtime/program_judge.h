// What is judged of the runs of somebody else's program beyond the round's rules: whether its log
// says what its submission says.

#ifndef SERVER_RUNTIME_PROGRAM_JUDGE_H_
#define SERVER_RUNTIME_PROGRAM_JUDGE_H_

#include <memory>
#include <optional>

#include "common/rules/program_log.h"
#include "server/core/types.h"

namespace assay::runtime {

// Compares the log of a run of `submission`; null if that is not of somebody else's program.
//   dataset: what the submission trains on; nullopt: not known any more.
std::unique_ptr<rules::ProgramLogCheck> CheckOfProgram(const core::Run& run,
                                                       const core::Submission& submission,
                                                       const std::optional<core::Dataset>& dataset);

// Adds what `check` has found to the verdict on the run.
void JudgeProgram(const core::Run& run, rules::ProgramLogCheck* check, core::RunFacts* facts);

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_PROGRAM_JUDGE_H_
