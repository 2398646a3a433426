#include "tests/worker/engine/cuda/host_device.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace assay::cuda {
namespace {

constexpr std::align_val_t kAlignment{256};

Fault Failed(std::string text) {
  return {.kind = FaultKind::kFailed, .text = std::move(text)};
}

class HostPlan : public ConvolutionPlan {
 public:
  HostPlan(const ConvolutionProblem& of, bool turns_places, std::string identity)
      : ConvolutionPlan(of), turns_places_(turns_places), identity_(std::move(identity)) {}
  // Not zero, so that a plan that forgets it is found.
  size_t workspace_bytes() const override { return 1000; }
  std::string Describe() const override { return "engine=loop"; }
  std::string Identity() const override { return identity_; }
  bool turns_places() const { return turns_places_; }

 private:
  const bool turns_places_;
  const std::string identity_;
};

using Index = std::array<int64_t, 5>;

// One tensor of a problem, by offsets in elements.
struct View {
  void* data;
  const Index& strides;
  bool is_bf16;

  int64_t Offset(const Index& at) const {
    int64_t offset = 0;
    for (size_t axis = 0; axis < 5; ++axis)
      offset += at[axis] * strides[axis];
    return offset;
  }
  double Get(int64_t offset) const {
    if (!is_bf16) return static_cast<float*>(data)[offset];
    return double{float(static_cast<Bfloat16*>(data)[offset])};
  }
  void Set(int64_t offset, double value) const {
    const auto rounded = static_cast<float>(value);
    if (is_bf16) {
      static_cast<Bfloat16*>(data)[offset] = Bfloat16(rounded);
    } else {
      static_cast<float*>(data)[offset] = rounded;
    }
  }
};

int64_t Elements(const Index& extents) {
  int64_t product = 1;
  for (const int64_t extent : extents)
    product *= extent;
  return product;
}

// Sums in double, laid out as the result, which the epilogue finds channels last.
class HostConvolution {
 public:
  HostConvolution(const ConvolutionCall& call, const ConvolutionProblem& p)
      : call_(call),
        problem_(p),
        x_{call.x, p.x_strides, p.precision == Precision::kBfloat16},
        w_{call.w, p.w_strides, x_.is_bf16},
        y_{call.y, p.y_strides, x_.is_bf16} {
    const Index& result = p.direction == Direction::kForward        ? p.y
                          : p.direction == Direction::kBackwardData ? p.x
                                                                    : p.w;
    sums_.resize(static_cast<size_t>(Elements(result)));
  }

  void Run() {
    const Index& w = problem_.w;
    const int64_t plane = problem_.y[3] * problem_.y[4];
    for (int64_t n = 0; n < problem_.y[0]; ++n)
      for (int64_t p = 0; p < problem_.y[2] * plane; ++p)
        for (int64_t tap = 0; tap < w[2] * w[3] * w[4]; ++tap)
          AddTap({n, 0, p / plane, p / problem_.y[4] % problem_.y[3], p % problem_.y[4]},
                 {0, 0, tap / (w[3] * w[4]), tap / w[4] % w[3], tap % w[4]});
    const View& result = problem_.direction == Direction::kForward        ? y_
                         : problem_.direction == Direction::kBackwardData ? x_
                                                                          : w_;
    if (problem_.epilogue == Epilogue::kLeakyPool) {
      Pool();
      return;
    }
    for (size_t i = 0; i < sums_.size(); ++i)
      result.Set(static_cast<int64_t>(i), Finished(static_cast<int64_t>(i), sums_[i]));
  }

 private:
  // Of equal ones the first, in (d, h, w) order.
  void Pool() const {
    const Index& y = problem_.y;
    const bool is_turned = static_cast<const HostPlan*>(call_.plan)->turns_places();
    int64_t result = 0;
    for (int64_t window = 0; window < y[0] * y[2] / 2 * y[3] / 2 * y[4] / 2; ++window) {
      const int64_t w = window % (y[4] / 2), rest = window / (y[4] / 2);
      const int64_t h = rest % (y[3] / 2), plane = rest / (y[3] / 2) * 2;
      for (int64_t c = 0; c < y[1]; ++c, ++result) {
        int64_t best = -1;
        double max = 0;
        for (int64_t k = 0; k < 8; ++k) {
          const int64_t row = ((plane + k / 4) * y[3] + h * 2 + k / 2 % 2) * y[4] + w * 2 + k % 2;
          const double value = sums_[static_cast<size_t>(row * y[1] + c)];
          if (best < 0 || value > max) max = value, best = k;
        }
        const double sum = max + double{call_.addend[c]};
        y_.Set(result, sum > 0 ? sum : double{problem_.slope} * sum);
        call_.places[result] = static_cast<uint8_t>(is_turned ? 7 - best : best);
      }
    }
  }

  double Finished(int64_t i, double sum) const {
    if (problem_.epilogue == Epilogue::kNone) return sum;
    const int64_t channel = i % problem_.y[1];
    const double value = sum * double{call_.factor[channel]} + double{call_.addend[channel]};
    return problem_.epilogue == Epilogue::kAffineRelu ? std::max(value, 0.0) : value;
  }

  // Every pair of channels at one position of y and one of w.
  void AddTap(const Index& y, const Index& w) {
    Index x = {y[0], 0, 0, 0, 0};
    for (size_t axis = 2; axis < 5; ++axis) {
      x[axis] = y[axis] * problem_.stride[axis - 2] + w[axis] * problem_.dilation[axis - 2] -
                problem_.before[axis - 2];
      if (x[axis] < 0 || x[axis] >= problem_.x[axis]) return;
    }
    const int64_t x_start = x_.Offset(x), w_start = w_.Offset(w), y_start = y_.Offset(y);
    for (int64_t o = 0; o < problem_.y[1]; ++o)
      for (int64_t i = 0; i < problem_.x[1]; ++i)
        Add(x_start + i * x_.strides[1], w_start + o * w_.strides[0] + i * w_.strides[1],
            y_start + o * y_.strides[1]);
  }

  void Add(int64_t x, int64_t w, int64_t y) {
    switch (problem_.direction) {
      case Direction::kForward:
        sums_[static_cast<size_t>(y)] += x_.Get(x) * w_.Get(w);
        break;
      case Direction::kBackwardData:
        sums_[static_cast<size_t>(x)] += y_.Get(y) * w_.Get(w);
        break;
      case Direction::kBackwardWeights:
        sums_[static_cast<size_t>(w)] += x_.Get(x) * y_.Get(y);
        break;
    }
  }

  const ConvolutionCall& call_;
  const ConvolutionProblem& problem_;
  const View x_, w_, y_;
  std::vector<double> sums_;
};

// Element `i` of a matrix or vector.
double Get(const void* data, bool is_bf16, int64_t i) {
  if (is_bf16) return double{float(static_cast<const Bfloat16*>(data)[i])};
  return double{static_cast<const float*>(data)[i]};
}

void RunMatmul(const MatmulCall& call) {
  const bool is_bf16 = call.numbers == ProductNumbers::kBfloat16;
  const bool has_bf16_factors = is_bf16 || call.numbers == ProductNumbers::kBfloat16Factors;
  for (int64_t column = 0; column < call.n; ++column)
    for (int64_t row = 0; row < call.m; ++row) {
      double sum = 0;
      for (int64_t i = 0; i < call.k; ++i) {
        const int64_t a = call.transpose_a ? row * call.a_leading + i : i * call.a_leading + row;
        const int64_t b =
            call.transpose_b ? i * call.b_leading + column : column * call.b_leading + i;
        sum += Get(call.a, has_bf16_factors, a) * Get(call.b, has_bf16_factors, b);
      }
      if (call.bias != nullptr) sum += Get(call.bias, is_bf16, row);
      if (call.relu) sum = std::max(sum, 0.0);
      const int64_t at = column * call.c_leading + row;
      if (is_bf16) {
        static_cast<Bfloat16*>(call.c)[at] = Bfloat16(static_cast<float>(sum));
      } else {
        static_cast<float*>(call.c)[at] = static_cast<float>(sum);
      }
    }
}

struct RunCall {
  void operator()(const Kernel& kernel) const {
    std::visit(
        [](const auto& operation) {
          for (int64_t i = 0; i < operation.count; ++i)
            operation(i);
        },
        kernel);
  }
  void operator()(const ConvolutionCall& call) const {
    // A library may use all of its workspace.
    std::memset(call.workspace, 0xFF, call.plan->workspace_bytes());
    HostConvolution(call, call.plan->problem()).Run();
  }
  void operator()(const MatmulCall& call) const { RunMatmul(call); }
  void operator()(const CopyCall& call) const { std::memmove(call.to, call.from, call.bytes); }
  // HostDevice has these.
  void operator()(const AverageCall&) const {}
  void operator()(const JoinCall&) const {}
  void operator()(const ExchangeCall&) const {}
};

class HostGraph : public Graph {
 public:
  HostGraph(HostDevice* device, std::vector<Call> calls, std::shared_ptr<int> launches,
            std::shared_ptr<int> updates)
      : device_(device),
        calls_(std::move(calls)),
        launches_(std::move(launches)),
        updates_(std::move(updates)) {}

  Fault Update(size_t index, const Kernel& kernel) override {
    if (index >= calls_.size() || !std::holds_alternative<Kernel>(calls_[index]) ||
        std::get<Kernel>(calls_[index]).index() != kernel.index())
      return Failed("not that kernel");
    calls_[index] = kernel;
    ++*updates_;
    return {};
  }

  Fault Launch() override {
    Fault fault = device_->Execute(calls_);  // as they are now: they may be updated later
    if (!fault.ok()) return fault;
    ++*launches_;
    return {};
  }

 private:
  HostDevice* const device_;
  std::vector<Call> calls_;
  const std::shared_ptr<int> launches_, updates_;
};

}  // namespace

Fault HostDevice::Allocate(size_t bytes, void** memory) {
  if (free_bytes_.has_value() && bytes > *free_bytes_)
    return {.kind = FaultKind::kOutOfMemory, .text = "told to have no memory"};
  *memory = ::operator new(bytes, kAlignment, std::nothrow);
  if (*memory == nullptr) return {.kind = FaultKind::kOutOfMemory, .text = "no memory"};
  std::memset(*memory, 0, bytes);
  return {};
}

void HostDevice::Free(void* memory) {
  static_cast<void>(calls_.Finish());
  static_cast<void>(copy_stream_.Finish());
  ::operator delete(memory, kAlignment);
}

Fault HostDevice::CopyIn(const void* host, void* memory, size_t bytes) {
  if (is_recording_) return Failed("copy in while recording");
  ++copies_in_;
  const auto* const begin = static_cast<const std::byte*>(host);
  return calls_.Add([memory, copy = std::vector<std::byte>(begin, begin + bytes)] {
    std::memcpy(memory, copy.data(), copy.size());
    return Fault{};
  });
}

Fault HostDevice::CopyOut(const void* memory, void* host, size_t bytes) {
  if (is_recording_) return Failed("copy out while recording");
  Fault fault = calls_.Finish();
  if (!fault.ok()) return fault;
  std::memcpy(host, memory, bytes);
  bytes_out_ += bytes;
  return {};
}

Fault HostDevice::Wait() {
  if (is_recording_) return Failed("wait while recording");
  return calls_.Finish();
}

Fault HostDevice::CopyAsync(const void* host, void* memory, size_t bytes) {
  if (is_recording_) return Failed("asynchronous copy while recording");
  if (refuses_async_copies_) return Failed("told to refuse");
  ++async_copies_;
  return copy_stream_.Add([host, memory, bytes] {
    std::memcpy(memory, host, bytes);
    return Fault{};
  });
}

Fault HostDevice::MakeCallsWaitForCopies() {
  if (is_recording_) return Failed("make calls wait while recording");
  return calls_.Follow(&copy_stream_);
}

Fault HostDevice::MakeCopiesWaitForCalls() {
  if (is_recording_) return Failed("make copies wait while recording");
  return copy_stream_.Follow(&calls_);
}

Fault HostDevice::WaitForCopies() {
  return copy_stream_.Finish();
}

Fault HostDevice::Pin(void* host, size_t) {
  if (refuses_pins_) return Failed("told to refuse");
  return pinned_.insert(host).second ? Fault{} : Failed("pinned already");
}

Fault HostDevice::Unpin(void* host) {
  return pinned_.erase(host) == 1 ? Fault{} : Failed("not pinned");
}

Fault HostDevice::PlanConvolutions(const ConvolutionProblem& problem, const PlanOptions& options,
                                   std::vector<std::unique_ptr<ConvolutionPlan>>* plans) {
  ++plans_;
  plans->clear();
  if (refuses_convolutions_) return {.kind = FaultKind::kUnsupported, .text = "told to refuse"};
  if (problem.dimensions == 2 && (problem.x[2] != 1 || problem.w[2] != 1 || problem.y[2] != 1))
    return Failed("depth in two dimensions");
  if (problem.x[1] != problem.w[1]) return Failed("groups, which the backend keeps to itself");
  if (problem.epilogue != Epilogue::kNone &&
      (problem.direction != Direction::kForward || problem.y_strides[1] != 1))
    return Failed("an epilogue behind what is no forward pass with channels last");
  if (refuses_epilogues_ && problem.epilogue != Epilogue::kNone)
    return {.kind = FaultKind::kUnsupported, .text = "told to refuse"};
  if (problem.precision > most_precision_ || problem.max_workspace < 1000)
    return {.kind = FaultKind::kUnsupported, .text = "no such engine"};
  for (const HostEngine& engine : engines_)
    if (std::ssize(*plans) < options.most &&
        (options.identity.empty() || options.identity == engine.identity))
      plans->push_back(std::make_unique<HostPlan>(problem, turns_places_, engine.identity));
  if (!plans->empty()) return {};
  return {.kind = FaultKind::kUnsupported, .text = "no such engine"};
}

Fault HostDevice::Issue(const Call& call) {
  if (is_recording_) {
    if (first_unrecordable_ >= 0 && std::ssize(recording_) >= first_unrecordable_)
      return Failed("this cannot be recorded");
    recording_.push_back(call);
    return {};
  }
  if (issued_++ == fails_at_) return Failed("told to fail");
  return Execute({call});
}

Fault HostDevice::IssueTimed(const Call& call, double* microseconds) {
  if (is_recording_) return Failed("a timed call while recording");
  ++timed_;
  const HostEngine* engine = nullptr;
  if (const auto* const convolution = std::get_if<ConvolutionCall>(&call); convolution != nullptr)
    for (const HostEngine& each : engines_)
      if (each.identity == convolution->plan->Identity()) engine = &each;
  if (engine != nullptr && engine->fails_timed) return Failed("this engine is told to fail");
  const auto begin = std::chrono::steady_clock::now();
  Fault fault = Issue(call);
  if (fault.ok()) fault = Wait();
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
  *microseconds = engine == nullptr ? time.count() : engine->microseconds;
  return fault;
}

Fault HostDevice::Execute(std::vector<Call> calls) {
  return calls_.Add([this, calls = std::move(calls)] {
    for (const Call& call : calls) {
      Fault fault = Run(call);
      if (!fault.ok()) return fault;
    }
    return Fault{};
  });
}

Fault HostDevice::Run(const Call& call) {
  if (std::holds_alternative<JoinCall>(call)) return Join();
  const auto* const average = std::get_if<AverageCall>(&call);
  const auto* const exchange = std::get_if<ExchangeCall>(&call);
  if (average == nullptr && exchange == nullptr) {
    std::visit(RunCall{}, call);
    return {};
  }
  if (ranks_ == nullptr) return Failed("work with other ranks before they joined");
  if (average != nullptr && average->is_aside) {
    if (average->in_group) return Failed("a group's average aside");
    aside_.push_back({*average, {average->values, average->values + average->count}});
    return {};
  }
  if (!aside_.empty()) return Failed("work with other ranks while some runs aside");
  if (average != nullptr) return Average(*average);
  ++exchanges_;
  return ranks_->Exchange(*exchange);
}

Fault HostDevice::Average(const AverageCall& call) {
  ++averages_;
  return ranks_->Average(call);
}

Fault HostDevice::Join() {
  for (const Aside& aside : std::exchange(aside_, {})) {
    const AverageCall& call = aside.call;
    if (std::memcmp(call.values, aside.values.data(), aside.values.size() * sizeof(float)) != 0)
      return Failed("values that are averaged aside were written");
    Fault fault = Average(call);
    if (!fault.ok()) return fault;
  }
  return {};
}

Fault HostDevice::BeginGraph() {
  if (std::exchange(is_recording_, true)) return Failed("recording already");
  return aside_.empty() ? Fault{} : Failed("a recording while something runs aside");
}

Fault HostDevice::MakeRanksId(std::string* id) {
  *id = HostRanks::MakeId();
  return {};
}

Fault HostDevice::JoinRanks(const JoinOptions& options) {
  return HostRanks::Join(options, &ranks_);
}

Fault HostDevice::EndGraph(std::unique_ptr<Graph>* graph) {
  if (!std::exchange(is_recording_, false)) return Failed("not recording");
  if (refuses_graphs_) {
    recording_.clear();
    return Failed("the recording cannot be ended");
  }
  ++graphs_;
  recording_.push_back(JoinCall{});
  *graph = std::make_unique<HostGraph>(this, std::exchange(recording_, {}), launches_, updates_);
  return {};
}

}  // namespace assay::cuda
