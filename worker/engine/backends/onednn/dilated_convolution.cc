#include "worker/engine/backends/onednn/dilated_convolution.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/log.h"
#include "worker/engine/backends/onednn/gemm.h"
#include "worker/engine/backends/onednn/vector_clones.h"

namespace assay {
namespace {

constexpr int64_t kMinChannels = 64;
// Of all products of taps and outputs, those that are not with padding: up to here.
constexpr double kMaxShare = 0.6;

ASSAY_VECTOR_CLONES
void AddRange(int64_t size, const float* __restrict from, float* __restrict to) {
  for (int64_t i = 0; i < size; ++i)
    to[i] += from[i];
}

}  // namespace

// The middle tap, which sees everything, comes first. Taps that see nothing are left out.
std::vector<DilatedConvolution::Window> DilatedConvolution::WindowsOf(const Conv2dShape& s) {
  std::vector<Window> windows;
  for (int64_t tap = 0; tap < s.kernel * s.kernel; ++tap) {
    const int64_t down = tap / s.kernel * s.dilation - s.pad();
    const int64_t right = tap % s.kernel * s.dilation - s.pad();
    const int64_t height = s.height - std::abs(down), width = s.width - std::abs(right);
    if (height <= 0 || width <= 0) continue;
    const Window window = {.tap = tap,
                           .top = std::max(int64_t{0}, -down),
                           .left = std::max(int64_t{0}, -right),
                           .height = height,
                           .width = width,
                           .down = down,
                           .right = right};
    windows.insert(down == 0 && right == 0 ? windows.begin() : windows.end(), window);
  }
  return windows;
}

bool DilatedConvolution::CanDo(const Conv2dShape& s) {
  return s.dilation > 1 && s.stride == 1 && s.groups == 1 && s.kernel > 1 &&
         std::min(s.in_channels, s.out_channels) >= kMinChannels;
}

bool DilatedConvolution::CanDoAll(const Conv2dShape& s) {
  if (!CanDo(s)) return false;
  int64_t inside = 0;
  for (const Window& window : WindowsOf(s))
    inside += window.height * window.width;
  const int64_t all = s.kernel * s.kernel * s.height * s.width;
  return static_cast<double>(inside) <= kMaxShare * static_cast<double>(all);
}

DilatedConvolution::DilatedConvolution(const Conv2dShape& shape, std::unique_ptr<Convolution> dense,
                                       std::unique_ptr<WinogradGrids> grids)
    : shape_(shape),
      dense_(std::move(dense)),
      grids_(std::move(grids)),
      windows_(WindowsOf(shape)) {
  CHECK(CanDo(shape) && (dense_ == nullptr) == CanDoAll(shape));
}

bool DilatedConvolution::IsWhole(const Window& window) const {
  return window.down == 0 && window.right == 0;
}

// The first pixel of a window's row, counted over all samples: of what the tap sees, or of the
// outputs.
int64_t DilatedConvolution::PixelOf(const Window& window, int64_t row, bool is_seen) const {
  const int64_t h = window.top + row % window.height + (is_seen ? window.down : 0);
  const int64_t w = window.left + (is_seen ? window.right : 0);
  return (row / window.height * shape_.height + h) * shape_.width + w;
}

// A window of a map, pixel after pixel: the map itself if it is all of it, else a copy in `memory`.
const float* DilatedConvolution::Take(const Window& window, bool is_seen, const float* map,
                                      int64_t channels, std::vector<float>* memory) const {
  if (IsWhole(window)) return map;
  memory->resize(std::max(memory->size(), static_cast<size_t>(Pixels(window) * channels)));
  const int64_t size = window.width * channels;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < shape_.batch * window.height; ++row)
    std::memcpy(memory->data() + row * size, map + PixelOf(window, row, is_seen) * channels,
                static_cast<size_t>(size) * sizeof(float));
  return memory->data();
}

// Adds products_, pixel after pixel, to a window of a map.
void DilatedConvolution::Add(const Window& window, bool is_seen, int64_t channels,
                             float* map) const {
  const int64_t size = window.width * channels;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < shape_.batch * window.height; ++row)
    AddRange(size, products_.data() + row * size, map + PixelOf(window, row, is_seen) * channels);
}

void DilatedConvolution::WeightsChanged() {
  if (dense_ != nullptr) dense_->WeightsChanged();
  if (grids_ != nullptr) grids_->WeightsChanged();
}

bool DilatedConvolution::ForwardNormalised(const Tensor& x, const Tensor& w, const Normalisation& n,
                                           const Tensor& y) {
  if (grids_ == nullptr) return dense_ != nullptr && dense_->ForwardNormalised(x, w, n, y);
  grids_->Run(x, w, n, y);
  return true;
}

void DilatedConvolution::Forward(const Tensor& x, const Tensor& w, const Tensor& y) {
  if (dense_ != nullptr) return dense_->Forward(x, w, y);
  CHECK(x.shape == shape_.x() && w.shape == shape_.w() && y.shape == shape_.y());
  const int64_t in = shape_.in_channels, out = shape_.out_channels;
  products_.resize(static_cast<size_t>(y.elements()));
  for (const Window& window : windows_) {
    const float* const seen = Take(window, true, x.As<float>(), in, &seen_);
    const bool is_whole = IsWhole(window);
    Gemm{false, false, Pixels(window), out, in}.Run(seen, w.As<float>() + window.tap * in * out,
                                                    is_whole ? y.As<float>() : products_.data());
    if (!is_whole) Add(window, false, out, y.As<float>());
  }
}

void DilatedConvolution::BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  if (dense_ != nullptr) return dense_->BackwardData(dy, w, dx);
  CHECK(dx.shape == shape_.x() && w.shape == shape_.w() && dy.shape == shape_.y());
  const int64_t in = shape_.in_channels, out = shape_.out_channels;
  products_.resize(static_cast<size_t>(dx.elements()));
  for (const Window& window : windows_) {
    const float* const gradients = Take(window, false, dy.As<float>(), out, &gradients_);
    const bool is_whole = IsWhole(window);
    Gemm{false, true, Pixels(window), in, out}.Run(gradients, w.As<float>() + window.tap * in * out,
                                                   is_whole ? dx.As<float>() : products_.data());
    if (!is_whole) Add(window, true, in, dx.As<float>());
  }
}

void DilatedConvolution::BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) {
  CHECK(x.shape == shape_.x() && dw.shape == shape_.w() && dy.shape == shape_.y());
  const int64_t in = shape_.in_channels, out = shape_.out_channels;
  for (int64_t tap = 0; tap < shape_.kernel * shape_.kernel; ++tap) {
    const auto is_tap = [tap](const Window& window) { return window.tap == tap; };
    if (std::none_of(windows_.begin(), windows_.end(), is_tap))
      std::fill_n(dw.As<float>() + tap * in * out, in * out, 0.0F);
  }
  for (const Window& window : windows_) {
    const float* const seen = Take(window, true, x.As<float>(), in, &seen_);
    const float* const gradients = Take(window, false, dy.As<float>(), out, &gradients_);
    Gemm{true, false, in, out, Pixels(window)}.Run(seen, gradients,
                                                   dw.As<float>() + window.tap * in * out);
  }
}

}  // namespace assay
