// The files of a dataset on this machine: made and compared with their manifest, without a
// coordinator.

#ifndef CLI_DATASET_DATASET_FILES_H_
#define CLI_DATASET_DATASET_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "cli/command/command.h"
#include "cli/command/context.h"
#include "cli/terminal/print.h"
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

// How a dataset is shown, made or registered.
const std::vector<Column>& DatasetFields();

// Threads to use where the user did not say: all processors.
int DefaultThreads();

Command DatasetGenerateCommand();
Command DatasetVerifyCommand();
Command DatasetImportCommand();
Command DatasetPackCommand();
Command DatasetIndexCommand();

}  // namespace assay::cli

#endif  // CLI_DATASET_DATASET_FILES_H_
