#include "worker/engine/backends/cuda/device/cuda_device.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "worker/engine/backends/cuda/device/cuda_fault.h"
#include "worker/engine/backends/cuda/device/cudnn_convolution.h"
#include "worker/engine/backends/cuda/device/launch.h"

namespace assay::cuda {
namespace {

// Two pieces of this size keep a PCI Express bus busy: it takes longer than the host to fill one.
constexpr size_t kPinnedBytes = size_t{4} << 20;
constexpr int kMinMajor = 8;  // compute capability: Ampere, the first with bfloat16 and TF32

class CudaGraph : public Graph {
 public:
  CudaGraph(cudaGraph_t graph, cudaGraphExec_t executable, std::vector<cudaGraphNode_t> nodes,
            int multiprocessors, cudaStream_t stream)
      : graph_(graph),
        executable_(executable),
        nodes_(std::move(nodes)),
        multiprocessors_(multiprocessors),
        stream_(stream) {}
  ~CudaGraph() override {
    cudaGraphExecDestroy(executable_);
    cudaGraphDestroy(graph_);
  }

  Fault Update(size_t index, const Kernel& kernel) override {
    if (index >= nodes_.size() || nodes_[index] == nullptr)
      return {.kind = FaultKind::kFailed, .text = "the recording has no such kernel"};
    return FaultOf("update a recorded kernel",
                   UpdateKernel(kernel, multiprocessors_, executable_, nodes_[index]));
  }

  Fault Launch() override {
    return FaultOf("launch a recording", cudaGraphLaunch(executable_, stream_));
  }

 private:
  const cudaGraph_t graph_;
  const cudaGraphExec_t executable_;
  const std::vector<cudaGraphNode_t> nodes_;
  const int multiprocessors_;
  const cudaStream_t stream_;
};

// Of a call that others can do without: a failure must not show as that of the next kernel.
Fault Tolerable(const std::string& what, cudaError_t error) {
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
  return FaultOf(what, error);
}

std::string VersionText(int version, int thousand) {
  return std::to_string(version / thousand) + "." + std::to_string(version % thousand / 10);
}

}  // namespace

Fault CudaDevice::Count(int* count) {
  RETURN_IF_FAULT("look for GPUs", cudaGetDeviceCount(count));
  return {};
}

Fault CudaDevice::Open(int index, std::unique_ptr<CudaDevice>* device) {
  std::unique_ptr<CudaDevice> opened(new CudaDevice);
  Fault fault = opened->Prepare(index);
  if (fault.ok()) *device = std::move(opened);
  return fault;
}

Fault CudaDevice::CheckGpu(int index) {
  int count = 0;
  Fault fault = Count(&count);
  if (!fault.ok()) return fault;
  if (index < 0 || index >= count)
    return {.kind = FaultKind::kAbsent,
            .text = "this process sees " + std::to_string(count) +
                    " GPUs, counted from 0; start fewer ranks on this node or check the driver "
                    "and CUDA_VISIBLE_DEVICES"};
  cudaDeviceProp properties = {};
  RETURN_IF_FAULT("describe the GPU", cudaGetDeviceProperties(&properties, index));
  int driver = 0;
  RETURN_IF_FAULT("describe the driver", cudaDriverGetVersion(&driver));
  multiprocessors_ = properties.multiProcessorCount;
  const size_t cudnn = cudnnGetVersion();
  model_ = properties.name;
  library_ = "cuDNN " + std::to_string(cudnn / 10000) + "." + std::to_string(cudnn / 100 % 100) +
             "." + std::to_string(cudnn % 100);
  description_ = model_ + ", compute capability " + std::to_string(properties.major) + "." +
                 std::to_string(properties.minor) + ", " +
                 std::to_string(properties.totalGlobalMem >> 30) + " GiB, driver for CUDA " +
                 VersionText(driver, 1000) + ", " + library_;
  if (properties.major >= kMinMajor) return {};
  return {.kind = FaultKind::kAbsent,
          .text = description_ +
                  " is too old: compute capability 8.0 is the least; choose backend "
                  "\"onednn\" (driver and GPU work)"};
}

Fault CudaDevice::Prepare(int index) {
  Fault fault = CheckGpu(index);
  if (!fault.ok()) return fault;
  RETURN_IF_FAULT("take the GPU", cudaSetDevice(index));
  RETURN_IF_FAULT("make a stream", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  RETURN_IF_FAULT("make a stream", cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking));
  for (cudaEvent_t* event : {&copies_done_, &calls_done_})
    RETURN_IF_FAULT("an event", cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  RETURN_IF_FAULT("open cuDNN", cudnnCreate(&cudnn_));
  RETURN_IF_FAULT("open cuDNN", cudnnSetStream(cudnn_, stream_));
  fault = cublas_.Open();
  if (!fault.ok()) return fault;
  RETURN_IF_FAULT("workspace of cuBLAS", cudaMalloc(&workspace_, CublasMatmul::kWorkspaceBytes));
  for (Pinned& pinned : pinned_) {
    RETURN_IF_FAULT("pinned memory", cudaMallocHost(&pinned.memory, kPinnedBytes));
    RETURN_IF_FAULT("an event", cudaEventCreateWithFlags(&pinned.is_free, cudaEventDisableTiming));
  }
  return {};
}

CudaDevice::~CudaDevice() {
  if (stream_ != nullptr) static_cast<void>(Wait());
  if (copies_ != nullptr) cudaStreamSynchronize(copies_);
  ranks_.reset();
  for (cudaEvent_t event :
       {is_ready_, is_done_, copies_done_, calls_done_, timed_begin_, timed_end_})
    if (event != nullptr) cudaEventDestroy(event);
  if (aside_ != nullptr) cudaStreamDestroy(aside_);
  for (const Pinned& pinned : pinned_) {
    if (pinned.is_free != nullptr) cudaEventDestroy(pinned.is_free);
    if (pinned.memory != nullptr) cudaFreeHost(pinned.memory);
  }
  if (workspace_ != nullptr) cudaFree(workspace_);
  if (cudnn_ != nullptr) cudnnDestroy(cudnn_);
  for (cudaStream_t stream : {stream_, copies_})
    if (stream != nullptr) cudaStreamDestroy(stream);
}

Fault CudaDevice::Allocate(size_t bytes, void** memory) {
  RETURN_IF_FAULT("allocate", cudaMalloc(memory, std::max<size_t>(bytes, 1)));
  return FaultOf("clear memory", cudaMemsetAsync(*memory, 0, bytes, stream_));
}

void CudaDevice::Free(void* memory) {
  // What still uses it must end first.
  cudaStreamSynchronize(stream_);
  cudaStreamSynchronize(copies_);
  cudaFree(memory);
}

Fault CudaDevice::CopyIn(const void* host, void* memory, size_t bytes) {
  for (size_t done = 0; done < bytes; done += kPinnedBytes) {
    const size_t part = std::min(kPinnedBytes, bytes - done);
    const Pinned& pinned = pinned_[std::exchange(next_pinned_, 1 - next_pinned_)];
    Fault fault = WaitFor([&pinned] { return cudaEventQuery(pinned.is_free); });
    if (!fault.ok()) return fault;
    std::memcpy(pinned.memory, static_cast<const std::byte*>(host) + done, part);
    RETURN_IF_FAULT("copy in",
                    cudaMemcpyAsync(static_cast<std::byte*>(memory) + done, pinned.memory, part,
                                    cudaMemcpyHostToDevice, stream_));
    RETURN_IF_FAULT("copy in", cudaEventRecord(pinned.is_free, stream_));
  }
  return {};
}

Fault CudaDevice::CopyOut(const void* memory, void* host, size_t bytes) {
  // A copy to pageable memory waits by itself, blindly; so what may hang is waited for first.
  Fault fault = ranks_ != nullptr ? Wait() : Fault{};
  if (!fault.ok()) return fault;
  RETURN_IF_FAULT("copy out",
                  cudaMemcpyAsync(host, memory, bytes, cudaMemcpyDeviceToHost, stream_));
  return Wait();
}

Fault CudaDevice::Wait() {
  if (ranks_ == nullptr) return FaultOf("wait", cudaStreamSynchronize(stream_));
  return WaitFor([this] { return cudaStreamQuery(stream_); });
}

// Until `query` says anything but "not ready". Work that waits for a rank that is gone never ends:
// so it is watched, and given up in time.
Fault CudaDevice::WaitFor(const std::function<cudaError_t()>& query) {
  const auto deadline = std::chrono::steady_clock::now() + ranks_timeout_;
  cudaError_t error = query();
  while (error == cudaErrorNotReady) {
    Fault fault = ranks_ == nullptr ? Fault{} : ranks_->Health();
    if (ranks_ != nullptr && fault.ok() && std::chrono::steady_clock::now() > deadline)
      fault = {.kind = FaultKind::kFailed,
               .text = "the other ranks were silent for " +
                       std::to_string(ranks_timeout_.count() / 1000) + " s"};
    if (!fault.ok()) {
      ranks_->Abort();
      return fault;
    }
    std::this_thread::yield();
    error = query();
  }
  // "Not ready" is remembered as if it were an error of the next kernel.
  static_cast<void>(cudaGetLastError());
  return FaultOf("wait", error);
}

Fault CudaDevice::CopyAsync(const void* host, void* memory, size_t bytes) {
  return Tolerable("copy asynchronously",
                   cudaMemcpyAsync(memory, host, bytes, cudaMemcpyHostToDevice, copies_));
}

Fault CudaDevice::MakeCallsWaitForCopies() {
  RETURN_IF_FAULT("make calls wait for copies", cudaEventRecord(copies_done_, copies_));
  return FaultOf("make calls wait for copies",
                 cudaStreamWaitEvent(stream_, copies_done_, cudaEventWaitDefault));
}

Fault CudaDevice::MakeCopiesWaitForCalls() {
  RETURN_IF_FAULT("make copies wait for calls", cudaEventRecord(calls_done_, stream_));
  return FaultOf("make copies wait for calls",
                 cudaStreamWaitEvent(copies_, calls_done_, cudaEventWaitDefault));
}

// What the copies wait for may be behind an average over the ranks: that of the step
// before, where gradients are not averaged in buckets.
Fault CudaDevice::WaitForCopies() {
  if (ranks_ == nullptr) return FaultOf("wait for copies", cudaStreamSynchronize(copies_));
  return WaitFor([this] { return cudaStreamQuery(copies_); });
}

Fault CudaDevice::Pin(void* host, size_t bytes) {
  return Tolerable("pin memory", cudaHostRegister(host, bytes, cudaHostRegisterDefault));
}

Fault CudaDevice::Unpin(void* host) {
  return FaultOf("unpin memory", cudaHostUnregister(host));
}

Fault CudaDevice::MakeRanksId(std::string* id) {
  return NcclRanks::MakeId(id);
}

Fault CudaDevice::JoinRanks(const JoinOptions& options) {
  RETURN_IF_FAULT("make a stream", cudaStreamCreateWithFlags(&aside_, cudaStreamNonBlocking));
  RETURN_IF_FAULT("an event", cudaEventCreateWithFlags(&is_ready_, cudaEventDisableTiming));
  RETURN_IF_FAULT("an event", cudaEventCreateWithFlags(&is_done_, cudaEventDisableTiming));
  ranks_timeout_ = options.timeout;
  return NcclRanks::Join(options, &ranks_);
}

// In a recording, too, the wait for an event makes the other stream part of it.
Fault CudaDevice::StartAverage(const AverageCall& call) {
  if (!call.is_aside) return ranks_->Average(call, stream_);
  RETURN_IF_FAULT("start aside", cudaEventRecord(is_ready_, stream_));
  RETURN_IF_FAULT("start aside", cudaStreamWaitEvent(aside_, is_ready_, 0));
  is_aside_ = true;
  return ranks_->Average(call, aside_);
}

// Without anything aside the event would be one of another recording.
Fault CudaDevice::Join() {
  if (!std::exchange(is_aside_, false)) return {};
  RETURN_IF_FAULT("join", cudaEventRecord(is_done_, aside_));
  return FaultOf("join", cudaStreamWaitEvent(stream_, is_done_, 0));
}

Fault CudaDevice::PlanConvolutions(const ConvolutionProblem& problem, const PlanOptions& options,
                                   std::vector<std::unique_ptr<ConvolutionPlan>>* plans) {
  return PlanCudnnConvolutions(problem, {.handle = cudnn_}, options, plans);
}

// With a bias behind the product where cuBLAS has no algorithm that adds it.
Fault CudaDevice::Multiply(const MatmulCall& product) {
  Fault fault = cublas_.Run(product, workspace_, stream_);
  if (fault.kind != FaultKind::kUnsupported || product.bias == nullptr) return fault;
  MatmulCall plain = product;
  plain.bias = nullptr;
  plain.relu = false;
  fault = cublas_.Run(plain, workspace_, stream_);
  if (!fault.ok()) return fault;
  const auto add = [&]<typename T>(T* c) {
    return AddBias<T>{.y = c,
                      .bias = static_cast<const T*>(product.bias),
                      .relu = product.relu,
                      .columns = product.m,
                      .count = product.m * product.n};
  };
  const Kernel kernel = product.numbers == ProductNumbers::kBfloat16
                            ? Kernel(add(static_cast<Bfloat16*>(product.c)))
                            : Kernel(add(static_cast<float*>(product.c)));
  return FaultOf("add a bias", LaunchKernel(kernel, multiprocessors_, stream_));
}

Fault CudaDevice::Start(const Call& call) {
  if (const auto* kernel = std::get_if<Kernel>(&call))
    return FaultOf("start a kernel", LaunchKernel(*kernel, multiprocessors_, stream_));
  if (const auto* convolution = std::get_if<ConvolutionCall>(&call))
    return RunCudnnConvolution(*convolution);
  if (const auto* product = std::get_if<MatmulCall>(&call)) return Multiply(*product);
  if (std::holds_alternative<JoinCall>(call)) return Join();
  const auto* const average = std::get_if<AverageCall>(&call);
  const auto* const exchange = std::get_if<ExchangeCall>(&call);
  if ((average != nullptr || exchange != nullptr) && ranks_ == nullptr)
    return {.kind = FaultKind::kFailed, .text = "work with other ranks before they joined"};
  if (average != nullptr) return StartAverage(*average);
  if (exchange != nullptr) return ranks_->Exchange(*exchange, stream_);
  const auto& copy = std::get<CopyCall>(call);
  return FaultOf(
      "copy", cudaMemcpyAsync(copy.to, copy.from, copy.bytes, cudaMemcpyDeviceToDevice, stream_));
}

Fault CudaDevice::Issue(const Call& call) {
  Fault fault = Start(call);
  if (!fault.ok() || !is_recording_) return fault;
  if (std::holds_alternative<Kernel>(call)) return RememberNode();
  nodes_.push_back(nullptr);
  return {};
}

Fault CudaDevice::IssueTimed(const Call& call, double* microseconds) {
  for (cudaEvent_t* event : {&timed_begin_, &timed_end_})
    if (*event == nullptr) RETURN_IF_FAULT("an event", cudaEventCreate(event));
  RETURN_IF_FAULT("time a call", cudaEventRecord(timed_begin_, stream_));
  Fault fault = Issue(call);
  if (!fault.ok()) return fault;
  RETURN_IF_FAULT("time a call", cudaEventRecord(timed_end_, stream_));
  fault = Wait();
  if (!fault.ok()) return fault;
  float milliseconds = 0;
  RETURN_IF_FAULT("time a call", cudaEventElapsedTime(&milliseconds, timed_begin_, timed_end_));
  *microseconds = 1e3 * double{milliseconds};
  return {};
}

// The kernel just recorded is what the next one would wait for.
Fault CudaDevice::RememberNode() {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t* last = nullptr;
  size_t count = 0;
#if CUDART_VERSION >= 13000
  RETURN_IF_FAULT(
      "find a recorded kernel",
      cudaStreamGetCaptureInfo(stream_, &status, nullptr, nullptr, &last, nullptr, &count));
#else
  RETURN_IF_FAULT("find a recorded kernel",
                  cudaStreamGetCaptureInfo_v2(stream_, &status, nullptr, nullptr, &last, &count));
#endif
  if (status != cudaStreamCaptureStatusActive || count != 1)
    return {.kind = FaultKind::kFailed, .text = "a recording broke off"};
  nodes_.push_back(*last);
  return {};
}

Fault CudaDevice::BeginGraph() {
  nodes_.clear();
  Fault fault = Join();
  if (!fault.ok()) return fault;
  RETURN_IF_FAULT("begin a recording",
                  cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  is_recording_ = true;
  return {};
}

Fault CudaDevice::EndGraph(std::unique_ptr<Graph>* graph) {
  is_recording_ = false;
  // A recording must end on the stream on which it began, and even a broken one must be ended.
  Fault fault = Join();
  cudaGraph_t recorded = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream_, &recorded);
  if (fault.ok()) fault = FaultOf("end a recording", ended);
  if (!fault.ok()) {
    if (recorded != nullptr) cudaGraphDestroy(recorded);
    static_cast<void>(cudaGetLastError());  // the same work will be started without a recording
    return fault;
  }
  cudaGraphExec_t executable = nullptr;
  fault = FaultOf("prepare a recording", cudaGraphInstantiate(&executable, recorded, 0));
  if (!fault.ok()) {
    cudaGraphDestroy(recorded);
    return fault;
  }
  *graph = std::make_unique<CudaGraph>(recorded, executable, std::exchange(nodes_, {}),
                                       multiprocessors_, stream_);
  return {};
}

}  // namespace assay::cuda
