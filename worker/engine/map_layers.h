// Layers on two-dimensional maps (B, H, W, C) of Backend::map_type(), for segmentation networks.
//
// They need a backend with Backend::maps(): without it Plan answers INVALID_ARGUMENT.

#ifndef WORKER_ENGINE_MAP_LAYERS_H_
#define WORKER_ENGINE_MAP_LAYERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "worker/engine/backend.h"
#include "worker/engine/layer.h"
#include "worker/engine/maps.h"
#include "worker/engine/sequence_layer.h"

namespace assay {

// How a kernel begins. The fan-in is kernel^2 * channels that one output sees.
enum class KernelInit {
  kKaiming,  // normal, deviation sqrt(2 / fan-in): He et al. 2015
  kTorch,    // uniform within 1 / sqrt(fan-in): PyTorch's default for convolutions
};

// A convolution that a normalisation with fixed statistics can follow at once (ConvNormLayer).
class MapConvolutionLayer : public Layer {
 public:
  // After Plan: chooses how ForwardNormalised will compute.
  virtual void PlanNormalised(bool relu) = 0;
  // As Forward and then MapOperations::Normalise, into `y`.
  virtual void ForwardNormalised(const Tensor& x, const Normalisation& n, const Tensor& y) = 0;
};

// A convolution without bias (maps.h).
class Conv2dLayer : public MapConvolutionLayer {
 public:
  struct Options {
    std::string name;
    int64_t filters = 0;
    int64_t kernel = 3;
    int64_t stride = 1;
    int64_t dilation = 1;
    int64_t groups = 1;
    KernelInit init = KernelInit::kKaiming;
  };

  Conv2dLayer(Backend* backend, const Shape& input, const Options& options);

  Shape output() const override { return shape_.y(); }
  std::vector<Parameter*> parameters() override { return {&kernel_}; }
  absl::Status Plan(LayerMemory memory, bool wants_dx) override;
  void ParametersChanged() override { convolution_->WeightsChanged(); }
  Tensor Forward(const Tensor& x, const Pass& pass) override;
  void PlanNormalised(bool relu) override { convolution_->PlanNormalised(relu); }
  void ForwardNormalised(const Tensor& x, const Normalisation& n, const Tensor& y) override;
  Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) override;
  LayerCost Cost(const Shape& input, bool wants_dx) override;

 private:
  Backend* const backend_;
  const Conv2dShape shape_;
  std::unique_ptr<Convolution> convolution_;
  Parameter kernel_;  // (k, k, C / groups, filters)
  Tensor y_;          // (B, H', W', filters)
  Tensor dx_;         // (B, H, W, C); empty if planned without
};

// A transposed convolution that doubles the map, without bias: kernel 3, stride 2, padding 1,
// output padding 1. It is the gradient of the convolution that halves a map of twice the extent.
class Deconv2dLayer : public MapConvolutionLayer {
 public:
  // `input`: (B, H, W, C)
  Deconv2dLayer(Backend* backend, const Shape& input, std::string name, int64_t filters);

  Shape output() const override { return shape_.x(); }
  std::vector<Parameter*> parameters() override { return {&kernel_}; }
  absl::Status Plan(LayerMemory memory, bool wants_dx) override;
  void ParametersChanged() override { convolution_->WeightsChanged(); }
  Tensor Forward(const Tensor& x, const Pass& pass) override;
  void PlanNormalised(bool) override {}  // a gradient has nothing to plan
  void ForwardNormalised(const Tensor& x, const Normalisation& n, const Tensor& y) override;
  Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) override;
  LayerCost Cost(const Shape& input, bool wants_dx) override;

 private:
  Backend* const backend_;
  const Conv2dShape shape_;  // from (B, 2 H, 2 W, filters) to (B, H, W, C)
  std::unique_ptr<Convolution> convolution_;
  Parameter kernel_;  // (3, 3, filters, C)
  Tensor y_;          // (B, 2 H, 2 W, filters)
  Tensor dx_;         // (B, H, W, C); empty if planned without
};

// y = x + bias, in place.
class BiasLayer : public Layer {
 public:
  // `fan_in`: the bias begins uniform within 1 / sqrt(fan_in), as PyTorch's.
  BiasLayer(Backend* backend, const Shape& input, std::string name, int64_t fan_in);

  Shape output() const override { return shape_; }
  std::vector<Parameter*> parameters() override { return {&bias_}; }
  LayerLiveness liveness() const override {
    return {.forward_in_place = true, .backward_in_place = true};
  }
  absl::Status Plan(LayerMemory memory, bool wants_dx) override;
  Tensor Forward(const Tensor& x, const Pass& pass) override;
  Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) override;

 private:
  Shape Rows() const;

  Backend* const backend_;
  const Shape shape_;
  Parameter bias_;  // (C)
};

// Batch normalisation with scale and shift, then ReLU if asked.
//
// Training normalises with the batch's mean and biased variance (over the ranks of Pass::group, if
// given, which must hold equally many samples) and moves the running ones by `momentum` towards
// them; the running variance takes the unbiased one, N / (N - 1). Evaluation uses the running ones.
class BatchNormLayer : public Layer, public AddingLayer {
 public:
  struct Options {
    std::string name;
    bool relu = false;
    double momentum = 0.1;
    double epsilon = 1e-5;
  };

  BatchNormLayer(Backend* backend, const Shape& input, const Options& options);

  Shape output() const override { return shape_; }
  std::vector<Parameter*> parameters() override { return {&scale_, &shift_}; }
  std::vector<Buffer*> buffers() override { return {&running_mean_, &running_variance_}; }
  LayerLiveness liveness() const override { return {.backward_in_place = true}; }
  absl::Status Plan(LayerMemory memory, bool wants_dx) override;
  Tensor Forward(const Tensor& x, const Pass& pass) override;
  Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) override;
  AddingLayer* adding() override;
  void ForwardAdded(const Tensor& x, const Pass& pass, const Addition& addition) override;

  // What evaluation does.
  Normalisation WithRunning() const { return With(running_mean_.value, running_variance_.value); }
  bool has_relu() const { return options_.relu; }
  // Where Forward leaves its result.
  Tensor result() const { return y_; }

 private:
  Normalisation With(const Tensor& mean, const Tensor& variance) const;
  void Average(GroupMean* group, const Tensor& values);
  void AverageMoments(GroupMean* group);
  void MoveRunning(const GroupMean* group);
  void TakeMoments(const Tensor& x, GroupMean* group);

  Backend* const backend_;
  const Options options_;
  const Shape shape_;
  Parameter scale_, shift_;                 // (C)
  Buffer running_mean_, running_variance_;  // (C)
  Tensor y_;                                // (B, H, W, C)
  Tensor mean_, variance_;                  // (C), of the last batch; also for Pass::is_repeated
  Tensor local_mean_;                       // (C), of this rank
  Tensor square_;                           // (C), of how far this rank's mean is off the group's
  Tensor group_sums_;                       // (2, C): means of the group's gradients of both
};

// A convolution and its normalisation. Evaluation takes both at once, where the result belongs, and
// needs no memory for what lies between them.
class ConvNormLayer : public SequenceLayer {
 public:
  // `input`: of the convolution.
  ConvNormLayer(const Shape& input, std::unique_ptr<MapConvolutionLayer> convolution,
                std::unique_ptr<BatchNormLayer> norm);

  absl::Status Plan(LayerMemory memory, bool wants_dx) override;
  std::vector<SequenceLayer*> sequences() override { return {}; }
  Tensor Forward(const Tensor& x, const Pass& pass) override;

 private:
  MapConvolutionLayer* const convolution_;
  BatchNormLayer* const norm_;
};

// y = max(0, x * weight + bias), channel by channel; weight begins at 1, bias at 0.
class AffineReluLayer : public Layer {
 public:
  AffineReluLayer(Backend* backend, const Shape& input, const std::string& name);

  Shape output() const override { return shape_; }
  std::vector<Parameter*> parameters() override { return {&weight_, &bias_}; }
  LayerLiveness liveness() const override { return {.backward_in_place = true}; }
  absl::Status Plan(LayerMemory memory, bool wants_dx) override;
  Tensor Forward(const Tensor& x, const Pass& pass) override;
  Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) override;

 private:
  Normalisation AsNormalisation() const;

  Backend* const backend_;
  const Shape shape_;
  Parameter weight_, bias_;  // (C)
  Tensor y_;                 // as the input
  Tensor zeros_;             // (C): mean and variance of a normalisation that changes nothing
};

// Mean over height and width: (B, H, W, C) -> (B, 1, 1, C).
class GlobalMeanLayer : public Layer {
 public:
  GlobalMeanLayer(Backend* backend, const Shape& input) : backend_(backend), input_(input) {}

  Shape output() const override { return {input_[0], 1, 1, input_[3]}; }
  absl::Status Plan(LayerMemory memory, bool wants_dx) override;
  Tensor Forward(const Tensor& x, const Pass& pass) override;
  Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) override;

 private:
  double factor() const { return 1.0 / static_cast<double>(input_[1] * input_[2]); }

  Backend* const backend_;
  const Shape input_;
  Tensor y_;   // (B, 1, 1, C)
  Tensor dx_;  // (B, H, W, C)
};

// The same number everywhere: (B, 1, 1, C) -> (B, height, width, C).
class SpreadLayer : public Layer {
 public:
  SpreadLayer(Backend* backend, const Shape& input, int64_t height, int64_t width)
      : backend_(backend), input_(input), output_({input[0], height, width, input[3]}) {}

  Shape output() const override { return output_; }
  absl::Status Plan(LayerMemory memory, bool wants_dx) override;
  Tensor Forward(const Tensor& x, const Pass& pass) override;
  Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) override;

 private:
  Backend* const backend_;
  const Shape input_, output_;
  Tensor y_;   // (B, height, width, C)
  Tensor dx_;  // (B, 1, 1, C)
};

// The same numbers in another type: from Backend::real() to Backend::map_type() or back.
class ConvertLayer : public Layer {
 public:
  ConvertLayer(Backend* backend, const Shape& input, DType from, DType to)
      : backend_(backend), shape_(input), from_(from), to_(to) {}

  Shape output() const override { return shape_; }
  absl::Status Plan(LayerMemory memory, bool wants_dx) override;
  Tensor Forward(const Tensor& x, const Pass& pass) override;
  Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) override;

 private:
  Backend* const backend_;
  const Shape shape_;
  const DType from_, to_;
  Tensor y_;   // of to_
  Tensor dx_;  // of from_; empty if planned without
};

}  // namespace assay

#endif  // WORKER_ENGINE_MAP_LAYERS_H_
