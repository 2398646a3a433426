// Whether the scores that are kept follow from the logs that are kept, by the rules that accepted
// each submission: every log is judged again, and every set of them scored again.

#ifndef SERVER_RUNTIME_SCORE_CHECK_H_
#define SERVER_RUNTIME_SCORE_CHECK_H_

#include <memory>

#include "server/store/verify.h"

namespace assay::runtime {

// Of all submissions that have ended, a run or a submission a step. A fault names submission and
// run, what is kept and what the log gives. Imported entries are judged by their logs alone, as
// when they were imported; those whose rules are not here are counted, and no fault.
std::unique_ptr<store::VerdictCheck> MakeScoreCheck();

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_SCORE_CHECK_H_
