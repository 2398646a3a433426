// What a layer costs at least: arithmetic, and numbers moved through memory.

#ifndef WORKER_ENGINE_LAYER_COST_H_
#define WORKER_ENGINE_LAYER_COST_H_

#include <cstdint>

namespace assay {

// Floating point operations of one batch, as the model defines them: those of convolutions and
// matrix products, a multiply-add counted as two, padding counted as work. What a backend leaves
// out because it is zero counts; what it computes twice does not.
struct LayerFlops {
  double forward = 0;
  double backward = 0;
};

// Numbers that one batch moves through memory, if nothing stays on the chip between layers and each
// layer reads what it is given once and writes its result once.
struct LayerTraffic {
  double forward = 0;
  double backward = 0;
};

struct LayerCost {
  LayerFlops flops;
  LayerTraffic traffic;

  LayerCost& operator+=(const LayerCost& other) {
    flops.forward += other.flops.forward;
    flops.backward += other.flops.backward;
    traffic.forward += other.traffic.forward;
    traffic.backward += other.traffic.backward;
    return *this;
  }
};

// What the cost of one batch in a layer that is not made of layers follows from.
struct LayerWork {
  int64_t inputs = 0;         // numbers that Forward reads
  int64_t outputs = 0;        // numbers that it writes
  int64_t weights = 0;        // numbers in all parameters
  int64_t multiply_adds = 0;  // of Forward's product of input and weights, if there is one
  bool is_trained = false;    // Backward computes the parameters' gradients
  bool wants_dx = false;      // and that of the input
};

// Forward reads x and the parameters and writes y. Backward reads dy; for the parameters' gradients
// x; for dx the parameters; and writes what it computes. A product's two gradients cost as much as
// the product, each. There is none where nobody needs it.
LayerCost CostOf(const LayerWork& work);

}  // namespace assay

#endif  // WORKER_ENGINE_LAYER_COST_H_
