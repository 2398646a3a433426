// What the nodes of a run read from storage, in which part of it.

#ifndef CLI_RUN_RUN_BYTES_H_
#define CLI_RUN_RUN_BYTES_H_

#include "cli/terminal/print.h"
#include "common/client/run_bytes.h"

namespace assay::cli {

using client::BytesOf;
using client::RunPhasesOf;

// Makes it members of the run, with a line for the first pass and a table.
void AddBytes(Json bytes, ShowView* view);

}  // namespace assay::cli

#endif  // CLI_RUN_RUN_BYTES_H_
