// `assay analyze characterise`: how a run used its nodes.

#ifndef CLI_ANALYZE_CHARACTERISE_H_
#define CLI_ANALYZE_CHARACTERISE_H_

#include "cli/command/command.h"

namespace assay::cli {

Command CharacteriseCommand();

}  // namespace assay::cli

#endif  // CLI_ANALYZE_CHARACTERISE_H_
