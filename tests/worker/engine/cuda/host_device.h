// A GPU faked on the CPU: kernels are loops over their elements, convolutions and matrix products
// follow the strides they are given. Recordings are lists of calls. What runs aside runs as late as
// it may: when it is joined.

#ifndef TESTS_WORKER_ENGINE_CUDA_HOST_DEVICE_H_
#define TESTS_WORKER_ENGINE_CUDA_HOST_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/worker/engine/cuda/host_ranks.h"
#include "worker/engine/backends/cuda/device.h"

namespace assay::cuda {

class HostDevice : public Device {
 public:
  // As if the library had no implementation for any convolution.
  void set_refuses_convolutions(bool refuses) { refuses_convolutions_ = refuses; }
  // As if it had none with an epilogue.
  void set_refuses_epilogues(bool refuses) { refuses_epilogues_ = refuses; }
  // As if it had none in shorter numbers.
  void set_most_precision(Precision most) { most_precision_ = most; }

  std::string Describe() const override { return "the CPU"; }
  Fault Allocate(size_t bytes, void** memory) override;
  void Free(void* memory) override;
  Fault CopyIn(const void* host, void* memory, size_t bytes) override;
  Fault CopyOut(const void* memory, void* host, size_t bytes) override;
  Fault Wait() override;
  Fault PlanConvolution(const ConvolutionProblem& problem,
                        std::unique_ptr<ConvolutionPlan>* plan) override;
  Fault Issue(const Call& call) override;
  Fault BeginGraph() override;
  Fault EndGraph(std::unique_ptr<Graph>* graph) override;
  // The ranks are threads of this process, each with a device of its own.
  Fault MakeRanksId(std::string* id) override;
  Fault JoinRanks(const JoinOptions& options) override;

  // What was asked of it so far.
  int issued() const { return issued_; }       // calls run at once
  int graphs() const { return graphs_; }       // recordings ended
  int launches() const { return *launches_; }  // of recordings
  int updates() const { return *updates_; }    // of kernels in recordings
  int averages() const { return averages_; }   // run, in recordings or not
  int exchanges() const { return exchanges_; }

  // Runs a call; for recordings.
  Fault Execute(const Call& call);

 private:
  // An average that runs aside, and the values as they were when it was started.
  struct Aside {
    AverageCall call;
    std::vector<float> values;
  };

  Fault Average(const AverageCall& call);
  Fault Join();

  bool refuses_convolutions_ = false, refuses_epilogues_ = false;
  Precision most_precision_ = Precision::kBfloat16;
  bool is_recording_ = false;
  std::vector<Call> recording_;
  int issued_ = 0, graphs_ = 0, averages_ = 0, exchanges_ = 0;
  std::unique_ptr<HostRanks> ranks_;  // null: alone
  std::vector<Aside> aside_;
  // Shared with the recordings.
  std::shared_ptr<int> launches_ = std::make_shared<int>(0);
  std::shared_ptr<int> updates_ = std::make_shared<int>(0);
};

}  // namespace assay::cuda

#endif  // TESTS_WORKER_ENGINE_CUDA_HOST_DEVICE_H_
