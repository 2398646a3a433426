// assay score: which runs count, and what comes out; for entries and, offline, for folders.

#ifndef CLI_ENTRY_SCORE_H_
#define CLI_ENTRY_SCORE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

#include "assay/v1/resources.pb.h"

#include "cli/command/command.h"
#include "cli/command/context.h"
#include "cli/terminal/print.h"

namespace assay::cli {

// Prints an entry's score with each run's time and part in it.
absl::Status PrintScore(Context* context, const v1::Submission& entry,
                        const std::vector<v1::Run>& runs);

// The score as JSON, assay.score/v1.
Json ScoreJson(const v1::Submission& entry, const std::vector<v1::Run>& runs);

// "  r-1  converged  21.8 s  quality 0.361  touch 2.0 ms after run_start ok".
std::string RunSummaryLine(const Printer& printer, const v1::Run& run);

std::vector<Command> ScoreCommands();

}  // namespace assay::cli

#endif  // CLI_ENTRY_SCORE_H_
