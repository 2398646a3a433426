// Datasets of formats that Assay does not know: what external programs train on. Any files below
// train/ and validation/, and what else the program needs (a vocabulary, a taxonomy) beside them.

#ifndef COMMON_DATASET_PLAIN_DATASET_H_
#define COMMON_DATASET_PLAIN_DATASET_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/dataset/manifest.h"
#include "common/dataset/parallel.h"

namespace assay::dataset {

struct PlainImport {
  std::string name;
  std::string benchmark;
  // Numbers of samples, where a file holds more than one; both or neither. Without them each file
  // is a sample.
  std::optional<int64_t> train_samples, validation_samples;
};

// True of the benchmarks whose samples have a format that nothing here checks.
bool IsPlain(absl::string_view benchmark);

// Writes the manifest of the dataset in `dir`, so that it can be registered and its copies
// verified, after reading every file once with `threads` threads. Returns the manifest. Blocks.
// ALREADY_EXISTS: there is a manifest. FAILED_PRECONDITION: a split without files, a folder within
// one, or another number of samples than given. INVALID_ARGUMENT: a number of samples out of range,
// or a benchmark whose samples have a format of their own.
absl::StatusOr<Manifest> ImportPlainDataset(const std::string& dir, const PlainImport& import,
                                            int threads, ProgressCallback progress = nullptr);

// Whether the file of `dir` is as its entry says. NOT_FOUND or DATA_LOSS, saying what is wrong.
absl::Status CheckPlainFile(const std::string& dir, const ManifestFile& file);

}  // namespace assay::dataset

#endif  // COMMON_DATASET_PLAIN_DATASET_H_
