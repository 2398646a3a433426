// How any synthetic dataset comes to disk: sample by sample, on several threads, so that an
// interruption costs no more than the samples at hand.

#ifndef COMMON_DATASET_GENERATION_H_
#define COMMON_DATASET_GENERATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/dataset/layout.h"
#include "common/dataset/manifest.h"
#include "common/dataset/parallel.h"

namespace assay::dataset {

// INVALID_ARGUMENT unless `count` is a number of samples that a dataset can have.
absl::Status CheckSampleCount(absl::string_view what, int64_t count);

// Makes the files of one thread.
class SampleMaker {
 public:
  virtual ~SampleMaker() = default;
  // Makes sure that the file of a sample is there and right, and returns its entry.
  virtual absl::StatusOr<ManifestFile> Ensure(Split split, uint32_t index) = 0;
};

struct Generation {
  std::string dir;
  Manifest description;                      // all but its files
  absl::string_view suffix = kSampleSuffix;  // of sample files
  int threads = 1;
};

// A maker for thread `thread`.
using MakeSampleMaker = absl::FunctionRef<absl::StatusOr<std::unique_ptr<SampleMaker>>(int thread)>;
// Writes what a dataset has besides samples, when these are there, and returns the entries.
using FinishGeneration = absl::FunctionRef<absl::StatusOr<std::vector<ManifestFile>>()>;

// Makes the directory hold the dataset described and returns its manifest. Files appear whole or
// not at all, and the manifest last, so after an interruption the same call goes on where it
// stopped; a complete dataset with the same description is left alone. Blocks.
// FAILED_PRECONDITION: the directory holds another dataset, or samples of unknown origin. Other
// codes: writing failed, naming the file.
absl::StatusOr<Manifest> Generate(const Generation& generation, MakeSampleMaker make,
                                  FinishGeneration finish, ProgressCallback progress);

// Writes a file through a temporary name, without waiting for the disk: a crash may leave a file
// without its content, which the next generation finds out by reading it.
absl::Status WriteSample(const std::string& path, absl::string_view bytes);

// The entry of a file with this content; `name` is relative to the dataset.
ManifestFile EntryOf(const std::string& name, absl::string_view bytes);

}  // namespace assay::dataset

#endif  // COMMON_DATASET_GENERATION_H_
