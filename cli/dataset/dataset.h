// assay dataset: the data that entries train on, and what the coordinator knows of it.

#ifndef CLI_DATASET_DATASET_H_
#define CLI_DATASET_DATASET_H_

#include <string>
#include <vector>

#include "assay/v1/resources.pb.h"

#include "cli/command/command.h"
#include "common/dataset/manifest.h"

namespace assay::cli {

// The resource that stands for the dataset in `directory`.
v1::Dataset DatasetResource(const std::string& id, const std::string& directory,
                            const dataset::Manifest& manifest);

// All of them: also those of dataset_files.h.
std::vector<Command> DatasetCommands();

}  // namespace assay::cli

#endif  // CLI_DATASET_DATASET_H_
