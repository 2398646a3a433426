// The layers that our models are made of.

#ifndef WORKER_ENGINE_LAYERS_H_
#define WORKER_ENGINE_LAYERS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "worker/engine/backend.h"
#include "worker/engine/layer.h"
#include "worker/engine/tensor.h"

namespace assay {

// y = ln(counts + 1): the first layer, from int16 counts of any shape. No parameters, no backward.
class Log1pLayer : public Layer {
 public:
  // Makes a map, with as many channels as the backend stores, or real numbers.
  Log1pLayer(Backend* backend, const Shape& input, bool is_map = false);

  Shape output() const override { return shape_; }
  absl::Status Plan(LayerMemory memory, bool wants_dx) override;
  Tensor Forward(const Tensor& x, const Pass& pass) override;
  Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) override;

 private:
  Backend* const backend_;
  const DType type_;
  const Shape shape_;
  Tensor y_;
};

// Convolution (stride 1, SAME) -> bias -> leaky ReLU -> max pooling 2x2x2, stride 2.
//
// The unpooled result lives at most in scratch: its pooled value, the position of each maximum and
// one sign are all that backward needs.
class ConvPoolLayer : public Layer {
 public:
  struct Options {
    std::string name;
    int64_t kernel = 3;
    int64_t filters = 0;
    double slope = 0.3;
    // Axes (D, H, W) along which the input brings its padding, or its neighbours' planes, with it:
    // there nothing is padded and the output is smaller by kernel - 1 before pooling.
    std::array<bool, 3> has_halo = {};
    int64_t empty_channels = 0;                  // of the input: ConvPoolShape
    bool reads_map = false, writes_map = false;  // of Backend::map_type(); else real
  };

  // `input`: (B, D, H, W, C), empty channels included
  ConvPoolLayer(Backend* backend, const Shape& input, const Options& options);

  Shape output() const override { return shape_.y(); }
  std::vector<Parameter*> parameters() override { return {&kernel_, &bias_}; }
  absl::Status Plan(LayerMemory memory, bool wants_dx) override;
  void ParametersChanged() override { block_->WeightsChanged(); }
  Tensor Forward(const Tensor& x, const Pass& pass) override;
  Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) override;
  LayerCost Cost(const Shape& input, bool wants_dx) override;

 private:
  ConvPoolTensors Tensors(const Tensor& x, const Pass& pass) const;

  Backend* const backend_;
  const ConvPoolShape shape_;
  const DType result_;  // type of y_
  std::unique_ptr<ConvPool> block_;
  Parameter kernel_;  // (k, k, k, C, filters)
  Parameter bias_;    // (filters)
  Tensor y_;          // (B, D/2, H/2, W/2, filters)
  Tensor code_;       // same shape, uint8: see Backend::PoolForward
  Tensor dx_;         // (B, D, H, W, C); empty if planned without
};

// Dense -> bias -> activation -> dropout (in training). Flattens its input in memory order.
class DenseLayer : public Layer {
 public:
  struct Options {
    std::string name;
    int64_t units = 0;
    Activation activation;
    double dropout = 0;          // rate
    uint32_t dropout_layer = 0;  // tells the masks of a model's layers apart; below 64
    double l2 = 0;               // on the kernel
  };

  // `input`: batch first
  DenseLayer(Backend* backend, const Shape& input, const Options& options);

  Shape output() const override { return {batch_, options_.units}; }
  std::vector<Parameter*> parameters() override { return {&kernel_, &bias_}; }
  absl::Status Plan(LayerMemory memory, bool wants_dx) override;
  Tensor Forward(const Tensor& x, const Pass& pass) override;
  Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) override;
  LayerCost Cost(const Shape& input, bool wants_dx) override;

 private:
  DropoutMask MaskOf(const Pass& pass) const;

  Backend* const backend_;
  const Options options_;
  const int64_t batch_;
  const int64_t inputs_;  // of one sample
  Parameter kernel_;      // (inputs, units)
  Parameter bias_;        // (units)
  Tensor y_;              // (B, units), after dropout
  Tensor activated_;      // (B, units), before dropout; only with dropout
  Tensor scale_;          // (B, units), what dropout multiplied with; only with dropout
  Tensor dx_;             // (B, inputs); empty if planned without
};

}  // namespace assay

#endif  // WORKER_ENGINE_LAYERS_H_
