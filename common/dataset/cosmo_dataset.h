// Writes a synthetic CosmoFlow dataset to disk, in the real layout and format, with a manifest.

#ifndef COMMON_DATASET_COSMO_DATASET_H_
#define COMMON_DATASET_COSMO_DATASET_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "common/dataset/cosmo_synth.h"
#include "common/dataset/layout.h"
#include "common/dataset/manifest.h"
#include "common/dataset/parallel.h"
#include "common/dataset/tfrecord.h"

namespace assay::dataset {

struct CosmoDatasetSpec {
  std::string name = "cosmosyn";  // stands in the manifest
  CosmoParameters parameters;
  Compression compression = Compression::kNone;
  int64_t train_samples = 0;
  int64_t validation_samples = 0;
};

// "train/cosmosyn_univ_t00000012_000.tfrecord": <parent>_univ_<universe>_<block>, one block per
// synthetic universe. Bytewise order is order by index.
std::string CosmoFileName(Split split, uint32_t index);

// Makes `dir` hold the dataset that `spec` describes and returns its manifest; uses `threads`
// threads. Files appear whole or not at all, and the manifest last, so after an interruption the
// same call goes on where it stopped; a complete dataset with the same spec is left alone (its
// files are not read: see VerifyDataset). Blocks. INVALID_ARGUMENT: impossible spec.
// FAILED_PRECONDITION: `dir` holds a dataset with another spec, or sample files of unknown origin.
// Other codes: writing failed, naming the file.
absl::StatusOr<Manifest> GenerateCosmoDataset(const std::string& dir, const CosmoDatasetSpec& spec,
                                              int threads, ProgressCallback progress = nullptr);

struct ImportOptions {
  std::string name;
  int cube_edge = 128;
  Compression compression = Compression::kGzip;
};

// Writes the manifest of a dataset that came from elsewhere, such as the real one, after reading
// and checking every sample file, so that copies can be verified. Returns the manifest. Blocks.
// DATA_LOSS: a file is not a sample of that kind. ALREADY_EXISTS: there is a manifest.
// FAILED_PRECONDITION: no samples.
absl::StatusOr<Manifest> ImportCosmoDataset(const std::string& dir, const ImportOptions& options,
                                            int threads, ProgressCallback progress = nullptr);

}  // namespace assay::dataset

#endif  // COMMON_DATASET_COSMO_DATASET_H_
