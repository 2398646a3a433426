// [workload] of a submission file: somebody's own program in place of the native trainer.

#ifndef CLI_ENTRY_WORKLOAD_TABLE_H_
#define CLI_ENTRY_WORKLOAD_TABLE_H_

#include <string>
#include <vector>

#include "cli/command/context.h"
#include "cli/entry/submission_file.h"
#include "cli/entry/submission_keys.h"
#include "toml++/toml.h"

namespace assay::cli {

// Reads the table into the spec, and the place of each key into `positions`, as "workload.command".
// What is wrong becomes a problem of `file`. The source stays a folder's name here: PackSourceOf
// reads it.
void ReadWorkload(const toml::table& table, Position at, SubmissionFile* file);

// Packs the folder that [workload] names as its source, and finds out of which commit it is.
// `directory` is that of the submission file. A folder that cannot be packed becomes a problem of
// `file`. Nothing where it names none.
void PackSourceOf(const std::string& directory, SubmissionFile* file);

// Its keys, for the reference page of submission files.
std::vector<SubmissionTable> WorkloadKeyTexts();

// Makes the image's path whole and, where the file does not say it, finds its digest: by reading
// it, however large it is. One that cannot be read becomes a problem of `file`.
void FindImageOf(const Context& context, const std::string& directory, SubmissionFile* file);

}  // namespace assay::cli

#endif  // CLI_ENTRY_WORKLOAD_TABLE_H_
