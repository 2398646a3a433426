// assay dataset: make, check and register the data that entries train on.

#ifndef CLI_DATASET_DATASET_H_
#define CLI_DATASET_DATASET_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "assay/v1/resources.pb.h"

#include "cli/command/command.h"
#include "cli/command/context.h"
#include "common/dataset/climate_dataset.h"
#include "common/dataset/cosmo_dataset.h"
#include "common/dataset/manifest.h"

namespace assay::cli {

// Makes `directory` hold the dataset, with progress on stderr. See GenerateCosmoDataset and
// GenerateClimateDataset.
absl::StatusOr<dataset::Manifest> Generate(const Context& context, const std::string& directory,
                                           const dataset::CosmoDatasetSpec& spec, int threads);
absl::StatusOr<dataset::Manifest> Generate(const Context& context, const std::string& directory,
                                           const dataset::ClimateDatasetSpec& spec, int threads);

// The resource that stands for the dataset in `directory`.
v1::Dataset DatasetResource(const std::string& id, const std::string& directory,
                            const dataset::Manifest& manifest);

// Threads to use where the user did not say: all processors.
int DefaultThreads();

std::vector<Command> DatasetCommands();

}  // namespace assay::cli

#endif  // CLI_DATASET_DATASET_H_
