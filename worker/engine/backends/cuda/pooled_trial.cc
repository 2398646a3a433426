#include "worker/engine/backends/cuda/pooled_trial.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "worker/engine/backends/cuda/fault.h"
#include "worker/engine/backends/cuda/plan.h"

namespace assay::cuda {
namespace {

constexpr int64_t kEdge = 4, kIn = 8, kOut = 32, kTaps = 27, kCentre = 13;
constexpr float kSlope = 0.25F, kBias = 0.5F, kFar = 16;

// The block whose convolution hands channel o % kIn of x on to channel o of y, and a bias behind
// it. In each window of x a channel has eight different values; in every other window all are
// negative.
class Trial {
 public:
  Trial() : layout_(LayoutOf(SameConv(1, {kEdge, kEdge, kEdge}, kIn, kOut, 3))) {
    for (int64_t d = 0; d < kEdge; ++d)
      for (int64_t h = 0; h < kEdge; ++h)
        for (int64_t w = 0; w < kEdge; ++w)
          for (int64_t c = 0; c < kIn; ++c)
            x_.emplace_back(
                ValueAt(WindowOf(d / 2, h / 2, w / 2), d % 2 * 4 + h % 2 * 2 + w % 2, c));
    w_.assign(static_cast<size_t>(kOut * kTaps * kIn), Bfloat16(0.0F));
    for (int64_t o = 0; o < kOut; ++o)
      w_[static_cast<size_t>((o * kTaps + kCentre) * kIn + o % kIn)] = Bfloat16(1.0F);
  }

  ConvolutionProblem problem() const {
    ConvolutionProblem problem =
        ProblemOf(layout_, Epilogue::kLeakyPool, Precision::kBfloat16, size_t{64} << 20);
    problem.slope = kSlope;
    return problem;
  }
  const std::vector<Bfloat16>& x() const { return x_; }
  const std::vector<Bfloat16>& w() const { return w_; }

  absl::Status Judge(const std::vector<Bfloat16>& y, const std::vector<uint8_t>& places) const {
    for (int64_t i = 0; i < std::ssize(y); ++i) {
      const int64_t window = i / kOut, channel = i % kOut % kIn;
      int64_t place = 0;
      while (RankOf(window, place, channel) != 7)
        ++place;
      const float sum = ValueAt(window, place, channel) + kBias;
      const float value = sum > 0 ? sum : kSlope * sum;
      if (float(y[static_cast<size_t>(i)]) != value || places[static_cast<size_t>(i)] != place)
        return absl::InvalidArgumentError(absl::StrCat(
            "of window ", window, ", channel ", i % kOut, ", the library says maximum ",
            float(y[static_cast<size_t>(i)]), " at place ", places[static_cast<size_t>(i)],
            "; it is ", value, " at place ", place));
    }
    return absl::OkStatus();
  }

 private:
  static int64_t WindowOf(int64_t d, int64_t h, int64_t w) { return (d * 2 + h) * 2 + w; }
  // Of the eight values of a window and channel, from below.
  static int64_t RankOf(int64_t window, int64_t place, int64_t channel) {
    return (3 * place + channel + window) % 8;
  }
  static float ValueAt(int64_t window, int64_t place, int64_t channel) {
    const auto rank = static_cast<float>(RankOf(window, place, channel));
    return window % 2 == 0 ? rank : rank - kFar;
  }

  const ConvolutionLayout layout_;
  std::vector<Bfloat16> x_, w_;
};

}  // namespace

absl::Status TryPooledBlock(Device* device) {
  const Trial trial;
  std::vector<std::unique_ptr<ConvolutionPlan>> plans;
  RETURN_IF_ERROR(
      ToStatus("plan a block in one call", device->PlanConvolutions(trial.problem(), {}, &plans)));
  ConvolutionPlan* const plan = plans.front().get();
  std::vector<void*> all;
  const absl::Cleanup release = [&] {
    for (void* const memory : all)
      device->Free(memory);
  };
  const auto allocate = [&](size_t bytes, void** memory) -> absl::Status {
    RETURN_IF_ERROR(ToStatus("try a block in one call", device->Allocate(bytes, memory)));
    all.push_back(*memory);
    return absl::OkStatus();
  };
  const auto copy_in = [&](const auto& from, void** memory) -> absl::Status {
    const size_t bytes = from.size() * sizeof(from[0]);
    RETURN_IF_ERROR(allocate(bytes, memory));
    return ToStatus("try a block in one call", device->CopyIn(from.data(), *memory, bytes));
  };

  std::vector<Bfloat16> y(static_cast<size_t>(kEdge * kEdge * kEdge / 8 * kOut));
  std::vector<uint8_t> places(y.size());
  ConvolutionCall call = {.plan = plan};
  void *addend = nullptr, *codes = nullptr;
  RETURN_IF_ERROR(copy_in(trial.x(), &call.x));
  RETURN_IF_ERROR(copy_in(trial.w(), &call.w));
  RETURN_IF_ERROR(copy_in(std::vector<float>(static_cast<size_t>(kOut), kBias), &addend));
  RETURN_IF_ERROR(allocate(y.size() * sizeof(Bfloat16), &call.y));
  RETURN_IF_ERROR(allocate(places.size(), &codes));
  RETURN_IF_ERROR(allocate(plan->workspace_bytes() + 1, &call.workspace));
  call.addend = static_cast<const float*>(addend);
  call.places = static_cast<uint8_t*>(codes);
  RETURN_IF_ERROR(ToStatus("try a block in one call", device->Issue(call)));
  RETURN_IF_ERROR(ToStatus("try a block in one call",
                           device->CopyOut(call.y, y.data(), y.size() * sizeof(Bfloat16))));
  RETURN_IF_ERROR(
      ToStatus("try a block in one call", device->CopyOut(codes, places.data(), places.size())));
  return trial.Judge(y, places);
}

}  // namespace assay::cuda
