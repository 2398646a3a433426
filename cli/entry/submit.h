// assay plan, submit, status, why, cancel: the daily life of an entry.

#ifndef CLI_ENTRY_SUBMIT_H_
#define CLI_ENTRY_SUBMIT_H_

#include <vector>

#include "absl/status/statusor.h"

#include "assay/v1/submission_service.pb.h"

#include "cli/command/command.h"
#include "cli/command/context.h"
#include "cli/entry/submission_file.h"
#include "common/client/client.h"

namespace assay::cli {

std::vector<Command> SubmitCommands();

// To stderr, with the place in the file and how many there are.
void PrintDiagnostics(const Context& context, const SubmissionFile& file,
                      const std::vector<Diagnostic>& diagnostics);

// Reads a submission file and packs the source that it names. NOT_FOUND if there is no such file;
// otherwise see its `problems`.
absl::StatusOr<SubmissionFile> LoadSubmissionFile(const Context& context, const std::string& path);

// Plans, then submits. The result has no name if the rules say no: then the findings have been
// printed.
absl::StatusOr<v1::Submission> SubmitFile(Context* context, const client::Client& client,
                                          const SubmissionFile& file);

}  // namespace assay::cli

#endif  // CLI_ENTRY_SUBMIT_H_
