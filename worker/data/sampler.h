// Which samples a rank reads, and in which order: a pure function of configuration, seed and epoch.
//
// The order is the reference's since May 2022 (mlcommons/hpc, cosmoflow, data/cosmo.py): the whole
// list is shuffled with a seed common to all ranks, then dealt out in strides. So without staging
// every epoch deals all samples anew; with staging a node keeps its fixed subset and only the ranks
// on it exchange samples.

#ifndef WORKER_DATA_SAMPLER_H_
#define WORKER_DATA_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace assay::data {

// What becomes of samples that do not fill the last batch of every rank.
enum class Remainder {
  kRefuse,  // there must be none (CosmoFlow)
  kDrop,    // other ones are left out in each epoch (DeepCAM's training: PyTorch's
            // DistributedSampler and DataLoader with drop_last)
  kUneven,  // nothing is left out, ranks may have one sample more than others, and the order is
            // that of the list, in contiguous parts (DeepCAM's validation); staged: what the rank
            // staged
};

struct SamplerOptions {
  int64_t samples = 0;     // of the whole split, over all ranks
  int world_size = 1;      // data-parallel ranks
  int rank = 0;            // 0..world_size-1; node k has the ranks k*ranks_per_node and following
  int ranks_per_node = 1;  // divides world_size
  int local_batch = 1;
  bool staged = false;  // each node holds its own part of the samples
  bool shuffle = true;  // off for validation
  uint64_t seed = 0;    // the same on all ranks
  Remainder remainder = Remainder::kRefuse;
};

// Immutable; thread-safe. Samples are named by their index in the sorted list of files.
class Sampler {
 public:
  // INVALID_ARGUMENT: a number out of range, or with kRefuse a number of samples that is not a
  // multiple of world_size * local_batch; the message names the numbers and the nearest ones that
  // would do. With kDrop there must be one batch for every rank.
  static absl::StatusOr<Sampler> Create(const SamplerOptions& options);

  // The samples of this rank in epoch `epoch` (0-based), in order: samples_per_rank() of them. Over
  // all ranks every sample occurs exactly once, but for those that kDrop leaves out.
  std::vector<uint32_t> Order(int epoch) const;

  // The samples that this rank copies to its node's storage: every world_size-th, beginning at
  // rank.
  std::vector<uint32_t> SamplesToStage() const;

  // The samples that Order draws from: all of them, or with staging those of this node. Ascending.
  std::vector<uint32_t> NodeSamples() const;

  int64_t samples_per_rank() const;
  // Batches of this size in an epoch, the last of which may be short.
  int64_t StepsPerEpoch(int64_t batch_size) const {
    return (samples_per_rank() + batch_size - 1) / batch_size;
  }
  const SamplerOptions& options() const { return options_; }

 private:
  std::vector<uint32_t> UnevenPart() const;
  explicit Sampler(const SamplerOptions& options) : options_(options) {}

  SamplerOptions options_;
};

}  // namespace assay::data

#endif  // WORKER_DATA_SAMPLER_H_
