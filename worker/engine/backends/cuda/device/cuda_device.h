// A Device on one NVIDIA GPU.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUDA_DEVICE_H_
#define WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUDA_DEVICE_H_

#include <cuda_runtime_api.h>
#include <cudnn_graph.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worker/engine/backends/cuda/device.h"
#include "worker/engine/backends/cuda/device/cublas_matmul.h"
#include "worker/engine/backends/cuda/device/nccl_ranks.h"

namespace assay::cuda {

// Makes the GPU the calling thread's; from then on one thread uses it.
class CudaDevice : public Device {
 public:
  // GPUs that this process sees. kAbsent: no driver or no GPU.
  static Fault Count(int* count);
  // kAbsent: no driver, no such GPU, or one older than this build has code for.
  static Fault Open(int index, std::unique_ptr<CudaDevice>* device);
  ~CudaDevice() override;

  std::string Describe() const override { return description_; }
  std::string Model() const override { return model_; }
  std::string Library() const override { return library_; }
  Fault Allocate(size_t bytes, void** memory) override;
  void Free(void* memory) override;
  Fault CopyIn(const void* host, void* memory, size_t bytes) override;
  Fault CopyOut(const void* memory, void* host, size_t bytes) override;
  Fault Wait() override;
  Fault CopyAsync(const void* host, void* memory, size_t bytes) override;
  Fault MakeCallsWaitForCopies() override;
  Fault MakeCopiesWaitForCalls() override;
  Fault WaitForCopies() override;
  Fault Pin(void* host, size_t bytes) override;
  Fault Unpin(void* host) override;
  Fault PlanConvolutions(const ConvolutionProblem& problem, const PlanOptions& options,
                         std::vector<std::unique_ptr<ConvolutionPlan>>* plans) override;
  Fault Issue(const Call& call) override;
  Fault IssueTimed(const Call& call, double* microseconds) override;
  Fault BeginGraph() override;
  Fault EndGraph(std::unique_ptr<Graph>* graph) override;
  Fault MakeRanksId(std::string* id) override;
  Fault JoinRanks(const JoinOptions& options) override;

 private:
  // Host memory from which the GPU copies by itself, so that the caller's memory is free again and
  // the next piece can be filled meanwhile.
  struct Pinned {
    void* memory = nullptr;
    cudaEvent_t is_free = nullptr;  // passed when the GPU has read it
  };

  CudaDevice() = default;
  Fault Prepare(int index);
  Fault CheckGpu(int index);
  Fault RememberNode();
  Fault Start(const Call& call);
  Fault StartAverage(const AverageCall& call);
  Fault Join();
  Fault Multiply(const MatmulCall& product);
  Fault WaitFor(const std::function<cudaError_t()>& query);

  std::string description_, model_, library_;
  int multiprocessors_ = 0;
  cudaStream_t stream_ = nullptr;
  cudaStream_t copies_ = nullptr;      // of batches from the host
  cudaEvent_t copies_done_ = nullptr;  // recorded behind the latest copy
  cudaEvent_t calls_done_ = nullptr;   // recorded behind the latest call
  cudnnHandle_t cudnn_ = nullptr;
  CublasMatmul cublas_;
  void* workspace_ = nullptr;         // of cuBLAS
  std::unique_ptr<NcclRanks> ranks_;  // null: alone
  std::chrono::milliseconds ranks_timeout_ = {};
  cudaStream_t aside_ = nullptr;    // of averages aside; null: alone
  cudaEvent_t is_ready_ = nullptr;  // what an average aside is about
  cudaEvent_t is_done_ = nullptr;   // all that ran aside
  bool is_aside_ = false;           // something may be running there
  std::array<Pinned, 2> pinned_;
  size_t next_pinned_ = 0;
  cudaEvent_t timed_begin_ = nullptr, timed_end_ = nullptr;  // null: nothing was timed yet
  bool is_recording_ = false;
  std::vector<cudaGraphNode_t> nodes_;  // of the calls recorded, null where not a kernel
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUDA_DEVICE_H_
