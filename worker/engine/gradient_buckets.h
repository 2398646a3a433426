// Averages gradients over the ranks in buckets, while the backward pass goes on.

#ifndef WORKER_ENGINE_GRADIENT_BUCKETS_H_
#define WORKER_ENGINE_GRADIENT_BUCKETS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "worker/engine/layer.h"
#include "worker/engine/rank_average.h"
#include "worker/engine/tensor.h"

namespace assay {

// Gradients of so many bytes that lie side by side are averaged as soon as they are final.
//
// Whole layers make a bucket, so most are larger. 4 MiB cut CosmoFlow's 34 MiB into the dense
// layers (16 MiB), the last convolution (13.5), the two before it (4.2), and the first two (0.2),
// which take most of the backward pass and are all that is left when it ends; v0.7's 22 MiB into
// 16, 4 and 1.3. DeepCAM's 215 MiB become some forty, each still large enough that what starting it
// costs (tens of microseconds) is little beside sending it.
inline constexpr int64_t kGradientBucketMib = 4;

// Gradients averaged so far, by this rank.
struct AverageCounts {
  int64_t averages = 0;
  int64_t bytes = 0;
  int64_t overlapped_bytes = 0;  // of those started before the backward pass was over
};

// Not thread-safe. One backward pass is: Begin, the pass with this as Pass::observer, Finish.
//
// Parameters lie in the flat gradients in the order of the layers, and Backward goes through the
// layers reversed, but through the branches of a BranchLayer one after the other: so what is final
// is not always the end of the vector. Any final parameters side by side make a bucket. Which they
// are depends on the model alone, so all ranks average the same buckets in the same order.
class GradientBuckets : public GradientObserver {
 public:
  // `parameters`: of the model, committed, in the order in which their gradients lie in `flat`.
  // `bytes`: of a bucket, positive. `average` has joined, and must outlive this.
  GradientBuckets(RankAverage* average, std::span<Parameter* const> parameters, const Tensor& flat,
                  int64_t bytes);

  void Begin();
  void Final(std::span<Parameter* const> parameters) override;
  // Averages the rest, and lets what follows wait for all. Every parameter that is not frozen must
  // have been final.
  void Finish();

  const AverageCounts& counts() const { return counts_; }

 private:
  enum class State { kOpen, kFinal, kStarted };
  struct Run {
    size_t begin, end;  // parameters
  };

  Run RunAround(size_t index) const;
  int64_t BytesOf(const Run& run) const;
  void Start(const Run& run);

  RankAverage* const average_;
  const std::vector<Parameter*> parameters_;
  const Tensor flat_;
  const int64_t bytes_;
  std::vector<int64_t> offsets_;                // of each in `flat_`, and the end
  std::map<const Parameter*, size_t> indices_;  // in `parameters_`
  std::vector<State> states_;
  size_t open_ = 0;  // parameters that are to become final yet
  AverageCounts counts_;
};

}  // namespace assay

#endif  // WORKER_ENGINE_GRADIENT_BUCKETS_H_
