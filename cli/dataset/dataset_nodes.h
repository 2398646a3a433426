// assay dataset stage, evict and nodes: which nodes keep a dataset between runs.

#ifndef CLI_DATASET_DATASET_NODES_H_
#define CLI_DATASET_DATASET_NODES_H_

#include "cli/command/command.h"

namespace assay::cli {

Command DatasetStageCommand();
Command DatasetEvictCommand();
Command DatasetNodesCommand();

}  // namespace assay::cli

#endif  // CLI_DATASET_DATASET_NODES_H_
