// What a model remembers: parameters, which training changes, and buffers, which layers keep.

#ifndef WORKER_ENGINE_PARAMETER_H_
#define WORKER_ENGINE_PARAMETER_H_

#include <cstdint>
#include <string>

#include "worker/engine/shape.h"
#include "worker/engine/tensor.h"

namespace assay {

// One named tensor that training changes.
struct Parameter {
  std::string name;        // as "conv1/kernel"
  Shape shape;             // of value and gradient
  double init_limit = 0;   // initial values are uniform in [-init_limit, init_limit),
  double init_stddev = 0;  // or, if this is not 0, normal with this standard deviation,
  double init_value = 0;   // added to this
  double l2 = 0;           // the loss includes l2 * sum(value^2)
  bool is_frozen = false;  // training changes it no more (Model::FreezeThrough)
  Tensor value, gradient;  // set when the model commits
};

// Numbers that a layer keeps between steps and that no gradient changes, such as running means.
struct Buffer {
  std::string name;
  Shape shape;
  double init_value = 0;
  Tensor value;  // set when the model commits
};

// sqrt(6 / (fan_in + fan_out)): Glorot and Bengio, "Understanding the difficulty of training deep
// feedforward neural networks", 2010. For a convolution a fan is receptive field times channels.
double GlorotLimit(int64_t fan_in, int64_t fan_out);

}  // namespace assay

#endif  // WORKER_ENGINE_PARAMETER_H_
