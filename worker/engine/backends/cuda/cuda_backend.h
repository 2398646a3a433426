// The engine's operations on an NVIDIA GPU: this part decides what to run, a Device runs it.
//
// Parameters and their gradients are float32 whatever the precision; maps are bfloat16 with
// Precision::kBfloat16. Sums are kept in double where they are long. Links no CUDA: the device is
// behind an interface, so that all of this runs in the tests on a fake one.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_CUDA_BACKEND_H_
#define WORKER_ENGINE_BACKENDS_CUDA_CUDA_BACKEND_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/log.h"
#include "worker/engine/backend.h"
#include "worker/engine/backends/cuda/call_trace.h"
#include "worker/engine/backends/cuda/cuda_adaptive.h"
#include "worker/engine/backends/cuda/cuda_copier.h"
#include "worker/engine/backends/cuda/cuda_maps.h"
#include "worker/engine/backends/cuda/cuda_ranks.h"
#include "worker/engine/backends/cuda/device.h"
#include "worker/engine/backends/cuda/engine_chooser.h"
#include "worker/engine/backends/cuda/plan.h"
#include "worker/engine/backends/cuda/recorder.h"

namespace assay::cuda {

struct CudaOptions {
  std::string name = "cuda";
  Precision precision = Precision::kFloat32;
  bool is_call_by_call = false;  // no recordings (recorder.h)
  std::string trace_path;        // where each call is written (call_trace.h); empty: nowhere
  // Convolution, activation and pooling of a block by one call of the library, where it offers that
  // and says the same as we do (pooled_trial.h); of bfloat16 only.
  bool fuses_blocks = false;
  EngineChooser::Options engines;
};

// Not thread-safe.
class CudaBackend : public Backend {
 public:
  // RESOURCE_EXHAUSTED: no memory for the backend's own tables. INVALID_ARGUMENT: the trace cannot
  // be written.
  static absl::StatusOr<std::unique_ptr<CudaBackend>> Make(std::unique_ptr<Device> device,
                                                           const CudaOptions& options);
  ~CudaBackend() override;

  absl::string_view name() const override { return options_.name; }
  DType real() const override { return DType::kFloat32; }
  DType map_type() const override {
    return options_.precision == Precision::kBfloat16 ? DType::kBfloat16 : DType::kFloat32;
  }
  bool is_host_memory() const override { return false; }

  absl::StatusOr<void*> Allocate(size_t bytes) override;
  void Free(void* memory) override;
  void CopyIn(const void* host, const Tensor& dst) override;
  void CopyOut(const Tensor& src, void* host) override;
  void Copy(const Tensor& src, const Tensor& dst) override;
  void TakeBox(const Tensor& whole, const Box& box, const Tensor& packed) override;
  void PutBox(const Tensor& packed, const Box& box, const Tensor& whole) override;
  void Synchronize() override;
  void BeginSection(int key) override;
  void EndSection() override;
  RankAverage* rank_average() override { return &ranks_; }
  AsyncCopier* async_copier() override { return &copier_; }
  MapOperations* maps() override { return &maps_; }
  AdaptiveOperations* adaptive() override { return &adaptive_; }
  EngineChoices engine_choices() const override { return engines_.made(); }

  int64_t StoredChannels(int64_t channels) const override {
    return map_type() == DType::kBfloat16 && channels == kCountChannels ? kStoredChannels
                                                                        : channels;
  }
  void Log1p(const Tensor& counts, const Tensor& y) override;
  absl::StatusOr<std::unique_ptr<Convolution>> MakeConvolution(const ConvShape& shape) override;
  void PoolForward(const Tensor& x, const Tensor& bias, double slope, const Tensor& y,
                   const Tensor& code) override;
  void PoolBackward(const Tensor& dy, const Tensor& code, double slope, const Tensor& dx,
                    const Tensor& dbias) override;
  absl::StatusOr<std::unique_ptr<ConvPool>> MakeConvPool(const ConvPoolShape& shape) override;
  void DenseForward(const Tensor& x, const Tensor& w, const Tensor& y) override;
  void DenseBackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override;
  void DenseBackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override;
  void ActivationForward(const Tensor& y, const Tensor& bias, const Activation& f) override;
  void ActivationBackward(const Tensor& y, const Activation& f, const Tensor& dy,
                          const Tensor& dbias) override;
  void Dropout(const DropoutMask& mask, const Tensor& y, const Tensor& scale) override;
  void Multiply(const Tensor& factor, const Tensor& x) override;
  void SquaredError(const Tensor& prediction, const Tensor& target, const Tensor& gradient,
                    const Tensor& loss) override;
  void Sgd(const SgdStep& step, const Tensor& parameters, const Tensor& gradients,
           const Tensor& velocity) override;
  void SumOfSquares(const Tensor& x, const Tensor& sum) override;

  // --- For the backend's own parts ---

  Device* device() { return device_.get(); }
  Precision precision() const { return options_.precision; }
  // As CudaOptions has it. The first call tries it, and says in the log why not.
  bool FusesBlocks();
  void Issue(absl::string_view what, const Call& call);
  // Issues a kernel.
  template <typename Operation>
  void Run(absl::string_view what, const Operation& operation) {
    Issue(what, Kernel(operation));
  }
  // y (columns) = factor * sums over the rows of what `source` gives; at most kMaxColumns. y is
  // float, or else Bfloat16.
  template <typename Source, typename To = float>
  void SumRows(absl::string_view what, const Source& source, int64_t rows, double factor,
               const Tensor& y) {
    FoldRows(what, source, Scaled<To>{y.As<To>(), factor}, rows, y.elements());
  }
  // The same for whatever `finish` makes of the sums.
  template <typename Source, typename Finish>
  void FoldRows(absl::string_view what, const Source& source, const Finish& finish, int64_t rows,
                int64_t columns);
  // The same for two sums over a map, of which `source` can read kFoldWidth channels at once if
  // `is_vectorised`.
  template <typename Source, typename Finish>
  void FoldMap(absl::string_view what, const Source& source, const Finish& finish, int64_t rows,
               int64_t columns, bool is_vectorised);
  // Makes scratch() at least this large. RESOURCE_EXHAUSTED: no memory.
  absl::Status ReserveScratch(size_t bytes);
  // Memory for any operation while it runs. May move when more is reserved.
  void* scratch() const { return scratch_; }
  // A row-major c = op(a) op(b) of matrices; c is real or what `numbers` says.
  MatmulCall Product(bool transpose_a, bool transpose_b, const Tensor& a, const Tensor& b,
                     const Tensor& c, ProductNumbers numbers) const;
  // How float32 is multiplied.
  ProductNumbers numbers() const {
    return precision() == Precision::kFloat32 ? ProductNumbers::kFloat32 : ProductNumbers::kTf32;
  }
  Recorder* recorder() { return &recorder_; }
  EngineChooser* engines() { return &engines_; }

 private:
  // A sample's, and as many as the tensor cores take at once.
  static constexpr int kCountChannels = 4, kStoredChannels = 8;

  CudaBackend(std::unique_ptr<Device> device, const CudaOptions& options,
              std::unique_ptr<CallTrace> trace);
  absl::Status Prepare();
  template <typename Sum, typename Finish>
  void FoldPartials(absl::string_view what, const Finish& finish,
                    const std::vector<int64_t>& stages, int64_t columns);
  // T: x and dx; Pooled: y and dy.
  template <typename T, typename Pooled>
  void Pool(const Tensor& x, const Tensor& bias, double slope, const Tensor& y, const Tensor& code);
  template <typename T, typename Pooled>
  void Unpool(const Tensor& dy, const Tensor& code, double slope, const Tensor& dx);
  // The bias' gradient of a pooling: sums of what `code` lets through, by channel.
  template <typename Pooled>
  void PoolBias(const Tensor& dy, const Tensor& code, double slope, const Tensor& dbias);
  template <typename T>
  void Activate(const Tensor& y, const Tensor& bias, const Activation& f);
  template <typename T>
  void ActivateBackward(const Tensor& y, const Activation& f, const Tensor& dy,
                        const Tensor& dbias);

  const std::unique_ptr<Device> device_;
  const CudaOptions options_;
  const std::unique_ptr<CallTrace> trace_;  // null: none
  Recorder recorder_;
  EngineChooser engines_;
  CudaRanks ranks_;
  CudaCopier copier_;
  CudaMaps maps_;
  CudaAdaptive adaptive_;
  void* log_table_ = nullptr;  // 65,536 floats
  void* partials_ = nullptr;   // of sums under way
  void* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
  std::optional<bool> fuses_blocks_;  // once tried
};

template <typename Source, typename Finish>
void CudaBackend::FoldRows(absl::string_view what, const Source& source, const Finish& finish,
                           int64_t rows, int64_t columns) {
  using Sum = typename Source::Sum;
  CHECK(columns <= kMaxColumns && FoldSums(rows, columns) <= kMaxFoldSums)
      << "rows=" << rows << " columns=" << columns;
  const std::vector<int64_t> stages = FoldStages(rows, columns);
  Run(what,
      Fold<Source, Finish>{.source = source,
                           .sums = stages.size() == 1 ? nullptr : static_cast<Sum*>(partials_),
                           .finish = finish,
                           .rows = rows,
                           .results = stages[0],
                           .columns = columns,
                           .count = stages[0] * columns});
  FoldPartials<Sum>(what, finish, stages, columns);
}

template <typename Source, typename Finish>
void CudaBackend::FoldMap(absl::string_view what, const Source& source, const Finish& finish,
                          int64_t rows, int64_t columns, bool is_vectorised) {
  const std::vector<int64_t> stages = FoldStages(rows, columns, kFoldWidth);
  if (!is_vectorised || stages.size() == 1) {
    FoldRows(what, source, finish, rows, columns);
    return;
  }
  CHECK(columns <= kMaxColumns && FoldSums(rows, columns, kFoldWidth) <= kMaxFoldSums)
      << "rows=" << rows << " columns=" << columns;
  Run(what, VecFold<Source, kFoldWidth>{.source = source,
                                        .sums = static_cast<Pair*>(partials_),
                                        .rows = rows,
                                        .results = stages[0],
                                        .columns = columns,
                                        .count = stages[0] * (columns / kFoldWidth)});
  FoldPartials<Pair>(what, finish, stages, columns);
}

// All but the first of `stages`.
template <typename Sum, typename Finish>
void CudaBackend::FoldPartials(absl::string_view what, const Finish& finish,
                               const std::vector<int64_t>& stages, int64_t columns) {
  Sum* const buffers[] = {static_cast<Sum*>(partials_),
                          static_cast<Sum*>(partials_) + stages[0] * columns};
  for (size_t stage = 1; stage < stages.size(); ++stage) {
    const bool is_last = stage + 1 == stages.size();
    Run(what, Fold<Partials<Sum>, Finish>{.source = {buffers[(stage - 1) % 2]},
                                          .sums = is_last ? nullptr : buffers[stage % 2],
                                          .finish = finish,
                                          .rows = stages[stage - 1],
                                          .results = stages[stage],
                                          .columns = columns,
                                          .count = stages[stage] * columns});
  }
}

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_CUDA_BACKEND_H_
