#include "tests/worker/engine/staged_backend.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/adaptive.h"
#include "worker/engine/bfloat16.h"
#include "worker/engine/maps.h"

namespace assay {
namespace {

constexpr std::align_val_t kAlignment{64};

void* MustAllocate(Backend* backend, size_t bytes) {
  absl::StatusOr<void*> memory = backend->Allocate(bytes);
  CHECK_OK(memory.status());
  return *memory;
}

// A device's copy of a host tensor for as long as it lives, of type `dtype`, which is the tensor's
// or bfloat16 for float; copied back at the end.
class Staged {
 public:
  Staged(Backend* backend, const Tensor& host) : Staged(backend, host, host.dtype) {}
  Staged(Backend* backend, const Tensor& host, DType dtype) : backend_(backend), host_(host) {
    if (host.data == nullptr) return;
    const bool is_same = dtype == host.dtype || host.dtype != DType::kFloat32;
    device_ = {nullptr, host.shape, is_same ? host.dtype : dtype};
    device_.data = MustAllocate(backend, device_.bytes());
    if (is_same) {
      backend->CopyIn(host.data, device_);
      return;
    }
    std::vector<Bfloat16> rounded;
    for (const float value : host.Span<float>())
      rounded.emplace_back(value);
    backend->CopyIn(rounded.data(), device_);
  }
  ~Staged() {
    if (host_.data == nullptr) return;
    if (device_.dtype == host_.dtype) {
      backend_->CopyOut(device_, host_.data);
    } else {
      std::vector<Bfloat16> rounded(static_cast<size_t>(host_.elements()));
      backend_->CopyOut(device_, rounded.data());
      std::transform(rounded.begin(), rounded.end(), host_.As<float>(),
                     [](Bfloat16 value) { return float(value); });
    }
    backend_->Free(device_.data);
  }
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;

  operator const Tensor&() const { return device_; }

 private:
  Backend* const backend_;
  const Tensor host_;
  Tensor device_;
};

// What calls a backend with staged tensors.
class Stage {
 protected:
  explicit Stage(Backend* backend) : backend_(backend) {}

  // Guaranteed elision makes it live until the end of the call that it is an argument of.
  Staged On(const Tensor& host) const { return Staged(backend_, host); }
  // The same for a map.
  Staged Map(const Tensor& host) const { return Staged(backend_, host, backend_->map_type()); }

  Backend* const backend_;
};

class StagedNormalisation {
 public:
  StagedNormalisation(Backend* backend, const Normalisation& host)
      : host_(host),
        mean_(backend, host.mean),
        variance_(backend, host.variance),
        scale_(backend, host.scale),
        shift_(backend, host.shift) {}

  operator Normalisation() const {
    return {mean_, variance_, scale_, shift_, host_.epsilon, host_.relu};
  }

 private:
  const Normalisation& host_;
  const Staged mean_, variance_, scale_, shift_;
};

class StagedConvolution : public Convolution {
 public:
  // `maps`: what x, y and their gradients are on the device.
  StagedConvolution(Backend* backend, DType maps, std::unique_ptr<Convolution> convolution)
      : backend_(backend), maps_(maps), convolution_(std::move(convolution)) {}

  void WeightsChanged() override { convolution_->WeightsChanged(); }
  void Forward(const Tensor& x, const Tensor& w, const Tensor& y) override {
    convolution_->Forward(Map(x), Staged(backend_, w), Map(y));
  }
  void PlanNormalised(bool relu) override { convolution_->PlanNormalised(relu); }
  bool ForwardNormalised(const Tensor& x, const Tensor& w, const Normalisation& n,
                         const Tensor& y) override {
    return convolution_->ForwardNormalised(Map(x), Staged(backend_, w),
                                           StagedNormalisation(backend_, n), Map(y));
  }
  void BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override {
    convolution_->BackwardData(Map(dy), Staged(backend_, w), Map(dx));
  }
  void BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override {
    convolution_->BackwardWeights(Map(x), Map(dy), Staged(backend_, dw));
  }

 private:
  Staged Map(const Tensor& host) const { return Staged(backend_, host, maps_); }

  Backend* const backend_;
  const DType maps_;
  const std::unique_ptr<Convolution> convolution_;
};

class StagedConvPool : public ConvPool {
 public:
  // `maps`: what x, y and their gradients are on the device.
  StagedConvPool(Backend* backend, DType maps, std::unique_ptr<ConvPool> block)
      : backend_(backend),
        maps_(maps),
        block_(std::move(block)),
        scratch_(MustAllocate(backend, block_->scratch_bytes() + 1)) {}
  ~StagedConvPool() override { backend_->Free(scratch_); }

  size_t scratch_bytes() const override { return 1; }
  void WeightsChanged() override { block_->WeightsChanged(); }

  void Forward(const ConvPoolTensors& t) override {
    const Staged x = Map(t.x), w(backend_, t.w), bias(backend_, t.bias), y = Map(t.y);
    const Staged code(backend_, t.code);
    block_->Forward({x, w, bias, y, code, scratch_});
  }
  void Backward(const ConvPoolTensors& t, const Tensor& dy, const ConvPoolGradients& g) override {
    const Staged x = Map(t.x), w(backend_, t.w), bias(backend_, t.bias), y = Map(t.y);
    const Staged code(backend_, t.code), gradient = Map(dy);
    const Staged dw(backend_, g.dw), dbias(backend_, g.dbias), dx = Map(g.dx);
    block_->Backward({x, w, bias, y, code, scratch_}, gradient, {dw, dbias, dx});
  }

 private:
  Staged Map(const Tensor& host) const { return Staged(backend_, host, maps_); }

  Backend* const backend_;
  const DType maps_;
  const std::unique_ptr<ConvPool> block_;
  void* const scratch_;
};

class StagedMaps : public MapOperations, private Stage {
 public:
  explicit StagedMaps(Backend* backend) : Stage(backend), maps_(backend->maps()) {}

  absl::StatusOr<std::unique_ptr<Convolution>> MakeConvolution2d(
      const Conv2dShape& shape) override {
    ASSIGN_OR_RETURN(std::unique_ptr<Convolution> made, maps_->MakeConvolution2d(shape));
    return std::make_unique<StagedConvolution>(backend_, backend_->map_type(), std::move(made));
  }
  void ChannelMoments(const Tensor& x, const Tensor& mean, const Tensor& variance) override {
    maps_->ChannelMoments(Map(x), On(mean), On(variance));
  }
  void Normalise(const Normalisation& n, const Tensor& x, const Tensor& y) override {
    maps_->Normalise(StagedNormalisation(backend_, n), Map(x), Map(y));
  }
  void NormaliseAdd(const Normalisation& n, const Tensor& x, const Tensor& other,
                    const Tensor& y) override {
    maps_->NormaliseAdd(StagedNormalisation(backend_, n), Map(x), Map(other), Map(y));
  }
  bool adds_in_passing() const override { return maps_->adds_in_passing(); }
  void NormaliseSums(const Normalisation& n, const Tensor& x, const Tensor& y, const Tensor& dy,
                     const Tensor& scale_gradient, const Tensor& shift_gradient) override {
    maps_->NormaliseSums(StagedNormalisation(backend_, n), Map(x), Map(y), Map(dy),
                         On(scale_gradient), On(shift_gradient));
  }
  void NormaliseBackward(const Normalisation& n, const Tensor& x, const ChannelSums& sums,
                         const Tensor& dy) override {
    const Staged scale = On(sums.scale), shift = On(sums.shift);
    maps_->NormaliseBackward(StagedNormalisation(backend_, n), Map(x), {scale, shift, sums.share},
                             Map(dy));
  }
  void MoveRunning(const RunningMoments& m) override {
    const Staged mean = On(m.mean), variance = On(m.variance);
    const Staged running_mean = On(m.running_mean), running_variance = On(m.running_variance);
    maps_->MoveRunning({mean, variance, running_mean, running_variance, m.rate, m.unbiased});
  }
  void Combine(double a, const Tensor& x, double b, const Tensor& y) override {
    maps_->Combine(a, Map(x), b, Map(y));
  }
  void Sum(const Tensor& a, const Tensor& b, bool relu, const Tensor& y) override {
    maps_->Sum(Map(a), Map(b), relu, Map(y));
  }
  void Relu(const Tensor& y) override { maps_->Relu(Map(y)); }
  void ReluBackward(const Tensor& y, const Tensor& dy) override {
    maps_->ReluBackward(Map(y), Map(dy));
  }
  void PutChannels(const Tensor& part, int64_t first, const Tensor& all) override {
    maps_->PutChannels(Map(part), first, Map(all));
  }
  void TakeChannels(const Tensor& all, int64_t first, const Tensor& part) override {
    maps_->TakeChannels(Map(all), first, Map(part));
  }
  void SpatialSum(const Tensor& x, double factor, const Tensor& sum) override {
    maps_->SpatialSum(Map(x), factor, Map(sum));
  }
  void SpatialSpread(const Tensor& x, double factor, const Tensor& y) override {
    maps_->SpatialSpread(Map(x), factor, Map(y));
  }
  void SoftmaxCrossEntropy(const Tensor& logits, const Tensor& labels, const Tensor& weights,
                           const Tensor& gradient, const Tensor& loss) override {
    maps_->SoftmaxCrossEntropy(On(logits), On(labels), On(weights), On(gradient), On(loss));
  }
  void Argmax(const Tensor& logits, const Tensor& labels) override {
    maps_->Argmax(On(logits), On(labels));
  }
  void CountClasses(const Tensor& labels, const Tensor& truth, const Tensor& counts) override {
    maps_->CountClasses(On(labels), On(truth), On(counts));
  }

 private:
  MapOperations* const maps_;
};

class StagedAdaptive : public AdaptiveOperations, private Stage {
 public:
  explicit StagedAdaptive(Backend* backend) : Stage(backend), adaptive_(backend->adaptive()) {}

  void Adam(const AdaptiveStep& step, const Tensor& parameters, const Tensor& gradients,
            const Tensor& m, const Tensor& v) override {
    adaptive_->Adam(step, On(parameters), On(gradients), On(m), On(v));
  }
  void AdamW(const AdaptiveStep& step, const Tensor& parameters, const Tensor& gradients,
             const Tensor& m, const Tensor& v) override {
    adaptive_->AdamW(step, On(parameters), On(gradients), On(m), On(v));
  }
  void Lamb(const AdaptiveStep& step, std::span<const int64_t> sizes, const Tensor& parameters,
            const Tensor& gradients, const Tensor& m, const Tensor& v) override {
    adaptive_->Lamb(step, sizes, On(parameters), On(gradients), On(m), On(v));
  }
  void AddScaled(double factor, const Tensor& x, const Tensor& y) override {
    adaptive_->AddScaled(factor, On(x), On(y));
  }

 private:
  AdaptiveOperations* const adaptive_;
};

class StagedBackend : public Backend, private Stage {
 public:
  explicit StagedBackend(std::unique_ptr<Backend> backend)
      : Stage(backend.get()), owned_(std::move(backend)), maps_(backend_), adaptive_(backend_) {}

  MapOperations* maps() override { return backend_->maps() == nullptr ? nullptr : &maps_; }
  AdaptiveOperations* adaptive() override {
    return backend_->adaptive() == nullptr ? nullptr : &adaptive_;
  }

  absl::string_view name() const override { return backend_->name(); }
  DType real() const override { return backend_->real(); }
  void Synchronize() override { backend_->Synchronize(); }

  absl::StatusOr<void*> Allocate(size_t bytes) override {
    void* const memory = ::operator new(bytes, kAlignment);
    std::memset(memory, 0, bytes);
    return memory;
  }
  void Free(void* memory) override { ::operator delete(memory, kAlignment); }
  void CopyIn(const void* host, const Tensor& dst) override {
    std::memcpy(dst.data, host, dst.bytes());
  }
  void CopyOut(const Tensor& src, void* host) override { std::memcpy(host, src.data, src.bytes()); }
  void Copy(const Tensor& src, const Tensor& dst) override {
    backend_->Copy(Staged(backend_, src), Staged(backend_, dst));
  }

  void TakeBox(const Tensor& whole, const Box& box, const Tensor& packed) override {
    backend_->TakeBox(On(whole), box, On(packed));
  }
  void PutBox(const Tensor& packed, const Box& box, const Tensor& whole) override {
    backend_->PutBox(On(packed), box, On(whole));
  }

  int64_t StoredChannels(int64_t channels) const override {
    return backend_->StoredChannels(channels);
  }
  void Log1p(const Tensor& counts, const Tensor& y) override {
    backend_->Log1p(On(counts), counts.shape == y.shape ? On(y) : Map(y));
  }
  absl::StatusOr<std::unique_ptr<Convolution>> MakeConvolution(const ConvShape& shape) override {
    ASSIGN_OR_RETURN(std::unique_ptr<Convolution> made, backend_->MakeConvolution(shape));
    return std::make_unique<StagedConvolution>(backend_, backend_->real(), std::move(made));
  }
  absl::StatusOr<std::unique_ptr<ConvPool>> MakeConvPool(const ConvPoolShape& shape) override {
    ASSIGN_OR_RETURN(std::unique_ptr<ConvPool> made, backend_->MakeConvPool(shape));
    return std::make_unique<StagedConvPool>(
        backend_, shape.is_map ? backend_->map_type() : backend_->real(), std::move(made));
  }
  void PoolForward(const Tensor& x, const Tensor& bias, double slope, const Tensor& y,
                   const Tensor& code) override {
    backend_->PoolForward(On(x), On(bias), slope, On(y), On(code));
  }
  void PoolBackward(const Tensor& dy, const Tensor& code, double slope, const Tensor& dx,
                    const Tensor& dbias) override {
    backend_->PoolBackward(On(dy), On(code), slope, On(dx), On(dbias));
  }
  void DenseForward(const Tensor& x, const Tensor& w, const Tensor& y) override {
    backend_->DenseForward(On(x), On(w), On(y));
  }
  void DenseBackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override {
    backend_->DenseBackwardData(On(dy), On(w), On(dx));
  }
  void DenseBackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override {
    backend_->DenseBackwardWeights(On(x), On(dy), On(dw));
  }
  // In the type of maps, where there is a choice.
  void ActivationForward(const Tensor& y, const Tensor& bias, const Activation& f) override {
    backend_->ActivationForward(Map(y), On(bias), f);
  }
  void ActivationBackward(const Tensor& y, const Activation& f, const Tensor& dy,
                          const Tensor& dbias) override {
    backend_->ActivationBackward(Map(y), f, Map(dy), On(dbias));
  }
  void Dropout(const DropoutMask& mask, const Tensor& y, const Tensor& scale) override {
    backend_->Dropout(mask, On(y), On(scale));
  }
  void Multiply(const Tensor& factor, const Tensor& x) override {
    backend_->Multiply(On(factor), On(x));
  }
  void SquaredError(const Tensor& prediction, const Tensor& target, const Tensor& gradient,
                    const Tensor& loss) override {
    backend_->SquaredError(On(prediction), On(target), On(gradient), On(loss));
  }
  void Sgd(const SgdStep& step, const Tensor& parameters, const Tensor& gradients,
           const Tensor& velocity) override {
    backend_->Sgd(step, On(parameters), On(gradients), On(velocity));
  }
  void SumOfSquares(const Tensor& x, const Tensor& sum) override {
    backend_->SumOfSquares(On(x), On(sum));
  }

 private:
  const std::unique_ptr<Backend> owned_;
  StagedMaps maps_;
  StagedAdaptive adaptive_;
};

}  // namespace

std::unique_ptr<Backend> StageThroughHost(std::unique_ptr<Backend> backend) {
  return std::make_unique<StagedBackend>(std::move(backend));
}

}  // namespace assay
