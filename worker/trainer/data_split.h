// One split of the dataset as a rank reads it: which files, in which order, in what batches, and
// what of it a device keeps.

#ifndef WORKER_TRAINER_DATA_SPLIT_H_
#define WORKER_TRAINER_DATA_SPLIT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/dataset/layout.h"
#include "common/dataset/manifest.h"
#include "worker/data/prefetcher.h"
#include "worker/data/sampler.h"
#include "worker/engine/batch.h"
#include "worker/engine/checkpoint.h"
#include "worker/trainer/spec.h"
#include "worker/trainer/workload.h"

namespace assay {

struct DataSplit {
  dataset::Split kind = dataset::Split::kTrain;
  std::vector<std::string> files;  // relative to the dataset, sorted
  std::unique_ptr<data::Sampler> sampler;
  int batch = 0;        // samples of this rank at once
  int64_t steps = 0;    // per epoch
  int64_t samples = 0;  // of this rank, per epoch
  // Places in the device's cache, from DivideCache.
  int64_t first_slot = 0;
  int64_t slots = 0;
  std::unique_ptr<data::Prefetcher> source;  // from OpenSource
  std::vector<std::shared_ptr<void>> pins;   // of the source's memory: end before it

  // Samples that this rank may come to see in any epoch, at most.
  int64_t distinct_samples() const;
  // Of the batch of 0-based `step`: the last one may be short.
  int64_t SamplesIn(int64_t step) const;
};

// Lists the files: of the dataset's folder, or, where it lies in archives, of `sharded`, its
// manifest. Errors of Sampler::Create and dataset::ListSamples.
absl::StatusOr<DataSplit> OpenSplit(const TrainerSpec& spec, const DataPlan& plan,
                                    dataset::Split kind,
                                    const dataset::Manifest* sharded = nullptr);

// Divides the cache that the spec asks for between the splits and returns how many samples it has
// room for: training first, and no more than there are. 0: none is asked for. INVALID_ARGUMENT: not
// one fits.
absl::StatusOr<int64_t> DivideCache(const TrainerSpec& spec, const DataPlan& plan, DataSplit* train,
                                    DataSplit* validation);

// Makes what reads the split from where the run begins or goes on; reads nothing. `spec` and the
// split, which must stay where it is, must outlive the source. Errors of Prefetcher::Create.
absl::Status OpenSource(const TrainerSpec& spec, const DataPlan& plan,
                        const TrainingPosition& start, DataSplit* split);

// The first `samples` of a batch.
Batch ViewOf(const data::Batch& batch, int64_t samples);

// The first `samples` of the batch after this one, if it has been read already.
std::optional<Batch> PeekAt(DataSplit* split, int64_t samples);

}  // namespace assay

#endif  // WORKER_TRAINER_DATA_SPLIT_H_
