// Chooses, for each convolution, among the engines that the device's library proposes.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_ENGINE_CHOOSER_H_
#define WORKER_ENGINE_BACKENDS_CUDA_ENGINE_CHOOSER_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "worker/engine/backends/cuda/device.h"
#include "worker/engine/engine_choice.h"

namespace assay::cuda {

// By which a choice is found again: TextOf of the problem and what else an engine may depend on.
std::string KeyOf(const ConvolutionProblem& problem);

// While a model is built: it waits for the device, and takes memory of its own for each problem
// that it times. Not thread-safe.
class EngineChooser {
 public:
  struct Options {
    bool is_timed = false;  // else the library's first is taken, whatever is stored
    EngineChoices stored;   // of an earlier run, or of another rank
  };

  // `device` must outlive it.
  EngineChooser(Device* device, const Options& options);

  // The plan of the engine that was stored for this problem or chosen before; else that of the
  // quickest: each candidate is run once and then three times, of which the shortest counts. Ties
  // go to the library's order. One that fails is left out; if all do, or there is no memory to run
  // them in, the library's first is taken. The choice is logged. Faults of
  // Device::PlanConvolutions.
  Fault Plan(const ConvolutionProblem& problem, std::unique_ptr<ConvolutionPlan>* plan);

  // In the order in which the problems came; none if nothing is timed.
  EngineChoices made() const;

 private:
  using Plans = std::vector<std::unique_ptr<ConvolutionPlan>>;

  bool TakeKnown(const ConvolutionProblem& problem, const std::string& key,
                 std::unique_ptr<ConvolutionPlan>* plan);
  Fault TakeFirst(const ConvolutionProblem& problem, std::unique_ptr<ConvolutionPlan>* plan);
  size_t TakeQuickest(const Plans& candidates, EngineChoice* choice);
  Fault TimeCandidate(const ConvolutionCall& call, double* microseconds);

  Device* const device_;
  const bool is_timed_;
  std::map<std::string, EngineChoice> stored_;
  std::map<std::string, EngineChoice> chosen_;
  std::vector<std::string> order_;  // keys of the latter
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_ENGINE_CHOOSER_H_
