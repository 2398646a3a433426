// assay dataset stage, evict, pin, unpin and nodes: which nodes keep a dataset between runs.

#ifndef CLI_DATASET_DATASET_NODES_H_
#define CLI_DATASET_DATASET_NODES_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

// What operators may order of nodes: stage, evict, pin and unpin.
std::vector<Command> DatasetOrderCommands();
Command DatasetNodesCommand();

}  // namespace assay::cli

#endif  // CLI_DATASET_DATASET_NODES_H_
