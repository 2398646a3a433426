// What the CUDA backend asks of a GPU: memory, one stream of calls, recordings of it, and a second
// stream of copies from the host.
//
// Implemented by the plug-in libassay_cuda.so, which alone links CUDA's libraries, and by a fake on
// the CPU in the tests. Everything that crosses this interface is plain C++: the plug-in and the
// program come from one build (kDeviceInterface tells).

#ifndef WORKER_ENGINE_BACKENDS_CUDA_DEVICE_H_
#define WORKER_ENGINE_BACKENDS_CUDA_DEVICE_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "worker/engine/backends/cuda/kernels.h"
#include "worker/engine/backends/cuda/number.h"

namespace assay::cuda {

// Raised with every change of this file or of the kernels.
inline constexpr int kDeviceInterface = 13;

// What went wrong, in CUDA's terms; the backend makes a Status of it.
enum class FaultKind {
  kNone,
  kAbsent,  // no driver, no GPU, or a GPU that this build has no code for
  kOutOfMemory,
  kUnsupported,  // the library has no implementation for these arguments
  kFailed,       // anything else; the device may be lost
};

struct [[nodiscard]] Fault {
  FaultKind kind = FaultKind::kNone;
  std::string text;

  bool ok() const { return kind == FaultKind::kNone; }
};

// Which of a convolution's three tensors is computed from the other two.
enum class Direction : int32_t { kForward, kBackwardData, kBackwardWeights };

// What follows a forward convolution before its result is stored, with float32 factors and addends
// of every channel.
enum class Epilogue : int32_t {
  kNone,
  kAffine,      // y * factor + addend
  kAffineRelu,  // and max(0, that)
  // y + addend, leaky ReLU, then the maximum of each 2x2x2 and its place in it, d*4 + h*2 + w: only
  // these are stored, with half the extents of y, which are even and three.
  kLeakyPool,
};

// A convolution as cuDNN wants it: tensors by extents and strides in elements. Axes of x and y:
// (batch, channels, D, H, W); of w: (out, in, kD, kH, kW). In two dimensions there is no D: its
// extents are 1. All are in the precision's number. `before` and `after`: zeros around x.
struct ConvolutionProblem {
  int dimensions = 3;
  Direction direction = Direction::kForward;
  Precision precision = Precision::kFloat32;
  Epilogue epilogue = Epilogue::kNone;     // of kForward only
  float slope = 0;                         // of a leaky ReLU
  size_t max_workspace = size_t{4} << 30;  // an engine that wants more is not worth it
  std::array<int64_t, 5> x = {}, x_strides = {};
  std::array<int64_t, 5> w = {}, w_strides = {};
  std::array<int64_t, 5> y = {}, y_strides = {};
  std::array<int64_t, 3> before = {}, after = {}, stride = {1, 1, 1}, dilation = {1, 1, 1};
};

// How the device computes one pass of one convolution. Must not outlive its device.
class ConvolutionPlan {
 public:
  explicit ConvolutionPlan(const ConvolutionProblem& of) : problem_(of) {}
  virtual ~ConvolutionPlan() = default;
  const ConvolutionProblem& problem() const { return problem_; }
  virtual size_t workspace_bytes() const = 0;
  // For people: what computes it, "engine=22 notes=0".
  virtual std::string Describe() const = 0;
  // Which engine, and set how: tells apart what the library proposes for one problem, and is the
  // same in every process with this library. "engine=22 knobs=2:3,5:1"; no spaces but these.
  virtual std::string Identity() const = 0;

 private:
  const ConvolutionProblem problem_;
};

// Of all that the library can do, what is wanted.
struct PlanOptions {
  int most = 1;          // so many plans at most
  std::string identity;  // only the plan with this Identity; empty: any
};

// In call order: x, w and y of the problem, whichever is the result; `workspace` is at least
// workspace_bytes().
struct ConvolutionCall {
  ConvolutionPlan* plan;
  void* x;
  void* w;
  void* y;
  void* workspace = nullptr;
  const float* factor = nullptr;  // of the epilogue, by channels of y
  const float* addend = nullptr;
  uint8_t* places = nullptr;  // of the maxima

  friend bool operator==(const ConvolutionCall&, const ConvolutionCall&) = default;
};

// What a product reads and writes; it adds up in float32 always.
enum class ProductNumbers : int32_t {
  kFloat32,
  kTf32,             // float32, but factors may be rounded to TF32
  kBfloat16,         // all three
  kBfloat16Factors,  // a and b bfloat16, c float32
};

// c = op(a) op(b), column-major as BLAS has it: c is (m, n), op(a) is (m, k), op(b) is (k, n); a
// leading dimension is the distance between columns.
struct MatmulCall {
  bool transpose_a, transpose_b;
  int64_t m, n, k;
  int64_t a_leading, b_leading, c_leading;
  const void* a;
  const void* b;
  void* c;
  ProductNumbers numbers = ProductNumbers::kFloat32;
  const void* bias = nullptr;  // (m), of c's number, added to each column; null: none
  bool relu = false;           // max(0, c) behind the bias; only with one

  friend bool operator==(const MatmulCall&, const MatmulCall&) = default;
};

struct CopyCall {
  const void* from;
  void* to;
  size_t bytes;

  friend bool operator==(const CopyCall&, const CopyCall&) = default;
};

// Replaces each value by its mean over the ranks that joined, or over those of this one's group.
struct AverageCall {
  float* values;
  int64_t count;
  bool in_group;
  // On a stream of its own: behind what was issued before, beside what is issued until a JoinCall,
  // which leaves `values` alone. Not in a group.
  bool is_aside;

  friend bool operator==(const AverageCall&, const AverageCall&) = default;
};

// What is issued from now on comes after all that runs aside. Nothing, if nothing does.
struct JoinCall {
  friend bool operator==(const JoinCall&, const JoinCall&) = default;
};

// Sends to and receives from other ranks, all at once; what is received lies in nothing else of it.
struct ExchangeCall {
  struct Message {
    int rank;
    const float* sent;
    int64_t sent_count;  // 0: nothing is sent
    float* received;
    int64_t received_count;

    friend bool operator==(const Message&, const Message&) = default;
  };
  std::vector<Message> messages;

  friend bool operator==(const ExchangeCall&, const ExchangeCall&) = default;
};

// While something runs aside, only a JoinCall may follow of those that are about other ranks, and
// further averages aside: two that wait for other ranks at once could wait for each other.
using Call = std::variant<Kernel, ConvolutionCall, MatmulCall, CopyCall, AverageCall, JoinCall,
                          ExchangeCall>;

// A recorded sequence of calls. Must not outlive its device.
class Graph {
 public:
  virtual ~Graph() = default;
  // Replaces the kernel that was call `index` of the recording by another of the same kind.
  virtual Fault Update(size_t index, const Kernel& kernel) = 0;
  // Starts all calls, in order, behind the work already under way.
  virtual Fault Launch() = 0;
};

// How a rank joins the others of its run.
struct JoinOptions {
  std::string id;  // of Device::MakeRanksId
  int rank = 0;
  int size = 1;
  int group_size = 1;                 // consecutive ranks; divides `size`
  std::chrono::milliseconds timeout;  // for all to join, and later for a rank that is silent
};

// Not thread-safe. Calls may return before their work is done; CopyOut and Wait wait for it. A
// fault of earlier work may surface in any later call.
class Device {
 public:
  virtual ~Device() = default;

  // For people: "NVIDIA H200, compute capability 9.0, 139 GiB, driver 13.0, cuDNN 9.19.0".
  virtual std::string Describe() const = 0;
  // Equal where what one has chosen is of use to the other: the kind of device, "NVIDIA H200", and
  // the version of the library of convolutions, "cuDNN 9.19.0".
  virtual std::string Model() const = 0;
  virtual std::string Library() const = 0;

  // Zeroed, at a multiple of 256 bytes.
  virtual Fault Allocate(size_t bytes, void** memory) = 0;
  virtual void Free(void* memory) = 0;
  // `host` may be reused when it returns.
  virtual Fault CopyIn(const void* host, void* memory, size_t bytes) = 0;
  virtual Fault CopyOut(const void* memory, void* host, size_t bytes) = 0;
  virtual Fault Wait() = 0;

  // Copies on a stream of their own, in order. `host` must stay as it is until WaitForCopies;
  // nothing but MakeCallsWaitForCopies and MakeCopiesWaitForCalls orders them and the calls.
  virtual Fault CopyAsync(const void* host, void* memory, size_t bytes) = 0;
  // Calls and copies of the first stream from now on come after all copies begun.
  virtual Fault MakeCallsWaitForCopies() = 0;
  // Copies begun from now on come after all of the first stream so far.
  virtual Fault MakeCopiesWaitForCalls() = 0;
  virtual Fault WaitForCopies() = 0;
  // From Pin to Unpin the GPU copies from `host` by itself. A refusal changes nothing.
  virtual Fault Pin(void* host, size_t bytes) = 0;
  virtual Fault Unpin(void* host) = 0;

  // What can compute the problem within its promises, the best by the library's opinion first, each
  // once; at least one if it is ok. kUnsupported: there is none, or none as wanted.
  virtual Fault PlanConvolutions(const ConvolutionProblem& problem, const PlanOptions& options,
                                 std::vector<std::unique_ptr<ConvolutionPlan>>* plans) = 0;
  virtual Fault Issue(const Call& call) = 0;
  // Issue and Wait, outside of a recording: so a fault is of this call. `microseconds`: that it
  // took on the device.
  virtual Fault IssueTimed(const Call& call, double* microseconds) = 0;

  // Until EndGraph calls are recorded and not executed; only Issue is allowed between the two.
  // EndGraph lets all that was recorded aside be joined. After a fault of Issue or of EndGraph none
  // of what was recorded has run; a recording that Issue broke off must be ended too.
  virtual Fault BeginGraph() = 0;
  virtual Fault EndGraph(std::unique_ptr<Graph>* graph) = 0;

  // The ranks of a run: an id made on one of them, with which all join once. Join blocks until all
  // have, or until the timeout: then the fault says who waited how long for what. kAbsent: NCCL is
  // not installed, or too old.
  virtual Fault MakeRanksId(std::string* id) = 0;
  virtual Fault JoinRanks(const JoinOptions& options) = 0;
};

// What the plug-in exports, as C functions.
//   int AssayCudaInterface()                          returns its kDeviceInterface
//   int AssayCountCudaDevices(Fault*)                 GPUs of this process; 0 perhaps with a fault
//   Device* AssayOpenCudaDevice(int index, Fault*)    null and a fault, or a device of its own
inline constexpr char kInterfaceFunction[] = "AssayCudaInterface";
inline constexpr char kCountFunction[] = "AssayCountCudaDevices";
inline constexpr char kOpenFunction[] = "AssayOpenCudaDevice";
using InterfaceFunction = int();
using CountFunction = int(Fault* fault);
using OpenFunction = Device*(int index, Fault* fault);

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_DEVICE_H_
