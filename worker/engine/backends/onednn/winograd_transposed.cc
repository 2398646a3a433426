#include "worker/engine/backends/onednn/winograd_transposed.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "common/log.h"
#include "worker/engine/backends/onednn/fixed_scale.h"
#include "worker/engine/backends/onednn/gemm.h"
#include "worker/engine/backends/onednn/vector_clones.h"

namespace assay {

namespace {

constexpr int64_t kTile = 3;   // inputs of a tile along an axis
constexpr int64_t kParts = 4;  // products for its odd results
constexpr int64_t kMinChannels = 64;
constexpr int64_t kMinTiles = 96;  // of all samples, that are worth reading the larger weights for
// Tiles of a strip: enough to be fast, few enough that a thread's products stay in a cache. With
// many threads there are fewer in a strip, down to the second number.
constexpr int64_t kStripTiles = 96;
constexpr int64_t kMinStripTiles = 24;

int64_t Threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

int64_t CeilDiv(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

// Which inputs of a tile a part is made of, one after the other: the first plus `sign` times the
// second.
struct Part {
  int64_t first, second;
  float sign;
};
constexpr Part kPart[kParts] = {{0, 2, -1}, {1, 2, 1}, {2, 1, -1}, {3, 1, -1}};

// to[i] = a[i] + sign * b[i] in each of `count` runs of `size` numbers; those of a and b begin
// `step` apart.
ASSAY_VECTOR_CLONES
void Mix(int64_t count, int64_t size, int64_t step, const float* __restrict a,
         const float* __restrict b, float sign, float* __restrict to) {
  for (int64_t run = 0; run < count; ++run, a += step, b += step, to += size)
    for (int64_t i = 0; i < size; ++i)
      to[i] = a[i] + sign * b[i];
}

// Four products of a tile, `distance` numbers apart, become three results in the place of the first
// three.
ASSAY_VECTOR_CLONES
void Gather(int64_t size, int64_t distance, float* products) {
  float* __restrict m0 = products;
  float* __restrict m1 = products + distance;
  float* __restrict m2 = products + 2 * distance;
  const float* __restrict m3 = products + 3 * distance;
  for (int64_t i = 0; i < size; ++i) {
    const float sum = m1[i] + m2[i], difference = m1[i] - m2[i];
    m0[i] += sum;
    m1[i] = difference;
    m2[i] = sum + m3[i];
  }
}

ASSAY_VECTOR_CLONES
void Put(const ChannelScale& scale, const float* __restrict from, float* __restrict to) {
  const float* __restrict slope = scale.slope;
  const float* __restrict offset = scale.offset;
  const float least = scale.least;
  for (int64_t c = 0; c < scale.channels; ++c) {
    const float value = from[c] * slope[c] + offset[c];
    to[c] = value < least ? least : value;
  }
}

// As Gather and then Put of each result.
ASSAY_VECTOR_CLONES
void PutTile(const ChannelScale& scale, int64_t distance, const float* products, float* const* to) {
  const float* __restrict m0 = products;
  const float* __restrict m1 = products + distance;
  const float* __restrict m2 = products + 2 * distance;
  const float* __restrict m3 = products + 3 * distance;
  float* __restrict to0 = to[0];
  float* __restrict to1 = to[1];
  float* __restrict to2 = to[2];
  const float* __restrict slope = scale.slope;
  const float* __restrict offset = scale.offset;
  const float least = scale.least;
  for (int64_t c = 0; c < scale.channels; ++c) {
    const float sum = m1[c] + m2[c], difference = m1[c] - m2[c];
    const float y0 = (m0[c] + sum) * slope[c] + offset[c];
    const float y1 = difference * slope[c] + offset[c];
    const float y2 = (sum + m3[c]) * slope[c] + offset[c];
    to0[c] = y0 < least ? least : y0;
    to1[c] = y1 < least ? least : y1;
    to2[c] = y2 < least ? least : y2;
  }
}

// What a kind of product multiplies with, of three taps: an odd result sees the last tap at its own
// input and the first at the next one.
ASSAY_VECTOR_CLONES
void MixTaps(int64_t size, int64_t kind, const float* __restrict first,
             const float* __restrict middle, const float* __restrict last, float* __restrict to) {
  const float factors[][3] = {{0, 1, 0}, {0, 0, 1}, {0.5, 0, 0.5}, {-0.5, 0, 0.5}, {1, 0, 0}};
  const float* const f = factors[kind];
  for (int64_t i = 0; i < size; ++i)
    to[i] = f[0] * first[i] + f[1] * middle[i] + f[2] * last[i];
}

}  // namespace

std::vector<float> StripMemory::Take(size_t count) {
  std::vector<float> memory;
  {
    const std::scoped_lock lock(mutex_);
    if (!free_.empty()) {
      memory = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (memory.size() < count) memory.resize(count);
  return memory;
}

void StripMemory::GiveBack(std::vector<float> memory) {
  const std::scoped_lock lock(mutex_);
  free_.push_back(std::move(memory));
}

// Some rows of tiles, which may belong to several samples, and memory for them.
struct WinogradTransposed::Strip {
  int64_t first, last;  // rows of tiles, counted over all samples
  int64_t begin, end;   // their rows of the small map, counted likewise
  const float* small;   // both maps whole
  float* large;
  float* mixed_rows;  // (rows of tiles, width, C)
  float* mixed;       // (rows, tile columns, C)
  float* even;        // products: (rows, width, filters) or (4, rows of tiles, width, filters)
  float* odd;         // (4, rows, tile columns, filters) or (4, 4, rows of tiles, ...)
  float* beyond;      // for results beyond the large map: (3, filters)

  int64_t tile_rows() const { return last - first; }
};

bool WinogradTransposed::CanDo(const Conv2dShape& s) {
  if (s.kernel != 3 || s.stride != 2 || s.dilation != 1 || s.groups != 1) return false;
  if (std::min(s.in_channels, s.out_channels) < kMinChannels) return false;
  const int64_t tiles =
      s.batch * CeilDiv(s.Output(s.height), kTile) * CeilDiv(s.Output(s.width), kTile);
  return tiles >= kMinTiles;
}

WinogradTransposed::WinogradTransposed(const Conv2dShape& shape, StripMemory* memory)
    : shape_(shape),
      height_(shape.Output(shape.height)),
      width_(shape.Output(shape.width)),
      tile_rows_(CeilDiv(height_, kTile)),
      tile_columns_(CeilDiv(width_, kTile)),
      memory_(memory) {
  CHECK(CanDo(shape));
}

void WinogradTransposed::Prepare(const float* w) {
  const int64_t size = shape_.in_channels * shape_.out_channels;
  weights_.resize(static_cast<size_t>(kKinds * kKinds * size));
  zeros_.resize(static_cast<size_t>(width_ * shape_.out_channels));
  std::vector<float> mixed(static_cast<size_t>(3 * size));  // of the rows of taps, (3, filters, C)
  for (int64_t row_kind = 0; row_kind < kKinds; ++row_kind) {
    MixTaps(3 * size, row_kind, w, w + 3 * size, w + 6 * size, mixed.data());
    for (int64_t column_kind = 0; column_kind < kKinds; ++column_kind)
      MixTaps(size, column_kind, mixed.data(), mixed.data() + size, mixed.data() + 2 * size,
              weights_.data() + (row_kind * kKinds + column_kind) * size);
  }
  is_current_ = true;
}

const float* WinogradTransposed::Weights(int64_t row_kind, int64_t column_kind) const {
  const int64_t size = shape_.in_channels * shape_.out_channels;
  return weights_.data() + (row_kind * kKinds + column_kind) * size;
}

// The first row of the small map, over all samples, in a row of tiles.
int64_t WinogradTransposed::FirstRow(int64_t tile_row) const {
  return tile_row / tile_rows_ * height_ + tile_row % tile_rows_ * kTile;
}

// What one part of the odd results sees down the map: strip.mixed_rows.
void WinogradTransposed::MixRows(const Strip& strip, int64_t part) const {
  const int64_t size = width_ * shape_.out_channels;
  const auto row = [&](int64_t tile_row, int64_t i) {
    const bool is_inside = tile_row % tile_rows_ * kTile + i < height_;
    return is_inside ? strip.small + (FirstRow(tile_row) + i) * size : zeros_.data();
  };
  const Part& p = kPart[part];
  for (int64_t tile_row = strip.first; tile_row < strip.last; ++tile_row)
    Mix(1, size, 0, row(tile_row, p.first), row(tile_row, p.second), p.sign,
        strip.mixed_rows + (tile_row - strip.first) * size);
}

// What one part of the odd results of `count` rows sees across the map: strip.mixed.
void WinogradTransposed::MixColumns(const Strip& strip, const float* rows, int64_t count,
                                    int64_t part) const {
  const int64_t channels = shape_.out_channels, whole = tile_columns_ - 1;
  const Part& p = kPart[part];
  for (int64_t row = 0; row < count; ++row) {
    const float* const from = rows + row * width_ * channels;
    float* const to = strip.mixed + row * tile_columns_ * channels;
    const auto last = [&](int64_t i) {
      const int64_t column = whole * kTile + i;
      return column < width_ ? from + column * channels : zeros_.data();
    };
    Mix(whole, channels, kTile * channels, from + p.first * channels, from + p.second * channels,
        p.sign, to);
    Mix(1, channels, 0, last(p.first), last(p.second), p.sign, to + whole * channels);
  }
}

// The place of a result, down and across counted in rows and columns of the small map.
float* WinogradTransposed::Result(const Strip& strip, int64_t tile_row, const Place& at) const {
  const int64_t h = (tile_row % tile_rows_ * kTile + at.down) * 2 + at.is_odd_row;
  const int64_t w = at.across * 2 + at.is_odd_column;
  if (h >= shape_.height || w >= shape_.width)  // elsewhere than its neighbours down and across
    return strip.beyond + (at.down + at.across) % kTile * shape_.in_channels;
  const int64_t row = tile_row / tile_rows_ * shape_.height + h;
  return strip.large + (row * shape_.width + w) * shape_.in_channels;
}

void WinogradTransposed::EvenRows(const Strip& strip, const ChannelScale& scale) const {
  const int64_t channels = shape_.out_channels, filters = shape_.in_channels;
  const int64_t count = strip.end - strip.begin;
  const float* const rows = strip.small + strip.begin * width_ * channels;
  Gemm{false, true, count * width_, filters, channels}.Run(rows, Weights(0, 0), strip.even);
  const Gemm product = {false, true, count * tile_columns_, filters, channels};
  for (int64_t part = 0; part < kParts; ++part) {
    MixColumns(strip, rows, count, part);
    product.Run(strip.mixed, Weights(0, 1 + part), strip.odd + part * product.m * filters);
  }
  for (int64_t row = 0; row < count; ++row) {
    const int64_t sample = (strip.begin + row) / height_, h = (strip.begin + row) % height_;
    const int64_t tile_row = sample * tile_rows_ + h / kTile, down = h % kTile;
    for (int64_t w = 0; w < width_; ++w)
      Put(scale, strip.even + (row * width_ + w) * filters,
          Result(strip, tile_row, {down, w, 0, 0}));
    for (int64_t tile = 0; tile < tile_columns_; ++tile)
      PutAcross(strip, scale, product.m * filters,
                strip.odd + (row * tile_columns_ + tile) * filters, tile_row,
                {down, tile * kTile, 0, 1});
  }
}

// Three results beside each other.
void WinogradTransposed::PutAcross(const Strip& strip, const ChannelScale& scale, int64_t distance,
                                   const float* products, int64_t tile_row, Place at) const {
  float* to[kTile];
  for (float*& one : to) {
    one = Result(strip, tile_row, at);
    ++at.across;
  }
  PutTile(scale, distance, products, to);
}

void WinogradTransposed::OddRows(const Strip& strip, const ChannelScale& scale) const {
  const int64_t channels = shape_.out_channels, filters = shape_.in_channels;
  const Gemm even = {false, true, strip.tile_rows() * width_, filters, channels};
  const Gemm odd = {false, true, strip.tile_rows() * tile_columns_, filters, channels};
  for (int64_t down = 0; down < kParts; ++down) {
    MixRows(strip, down);
    even.Run(strip.mixed_rows, Weights(1 + down, 0), strip.even + down * even.m * filters);
    for (int64_t across = 0; across < kParts; ++across) {
      MixColumns(strip, strip.mixed_rows, strip.tile_rows(), across);
      odd.Run(strip.mixed, Weights(1 + down, 1 + across),
              strip.odd + (down * kParts + across) * odd.m * filters);
    }
  }
  PutOddRows(strip, scale, even.m * filters, odd.m * filters);
}

// Of products of which those of one part are so many numbers.
void WinogradTransposed::PutOddRows(const Strip& strip, const ChannelScale& scale,
                                    int64_t even_size, int64_t odd_size) const {
  const int64_t filters = shape_.in_channels;
  const float* even = strip.even;
  float* odd = strip.odd;
  for (int64_t tile_row = strip.first; tile_row < strip.last; ++tile_row) {
    for (int64_t w = 0; w < width_; ++w, even += filters) {
      float* to[kTile];
      for (int64_t i = 0; i < kTile; ++i)
        to[i] = Result(strip, tile_row, {i, w, 1, 0});
      PutTile(scale, even_size, even, to);
    }
    for (int64_t tile = 0; tile < tile_columns_; ++tile, odd += filters) {
      for (int64_t across = 0; across < kParts; ++across)
        Gather(filters, kParts * odd_size, odd + across * odd_size);
      for (int64_t i = 0; i < kTile; ++i)
        PutAcross(strip, scale, odd_size, odd + i * kParts * odd_size, tile_row,
                  {i, tile * kTile, 1, 1});
    }
  }
}

void WinogradTransposed::RunStrip(Strip* strip, const ChannelScale& scale) const {
  const int64_t channels = shape_.out_channels, filters = shape_.in_channels;
  const int64_t rows = strip->tile_rows();
  const int64_t sizes[] = {rows * width_ * channels, kTile * rows * tile_columns_ * channels,
                           kParts * rows * width_ * filters,
                           kParts * kParts * rows * tile_columns_ * filters, kTile * filters};
  std::vector<float> memory = memory_->Take(
      static_cast<size_t>(std::accumulate(std::begin(sizes), std::end(sizes), int64_t{0})));
  strip->mixed_rows = memory.data();
  strip->mixed = strip->mixed_rows + sizes[0];
  strip->even = strip->mixed + sizes[1];
  strip->odd = strip->even + sizes[2];
  strip->beyond = strip->odd + sizes[3];
  EvenRows(*strip, scale);
  OddRows(*strip, scale);
  memory_->GiveBack(std::move(memory));
}

// Equally many for each thread, if there are so many rows of tiles.
int64_t WinogradTransposed::Strips() const {
  const int64_t rows = shape_.batch * tile_rows_, tiles = rows * tile_columns_;
  const int64_t threads = std::max(int64_t{1}, std::min(Threads(), tiles / kMinStripTiles));
  return std::min(rows, CeilDiv(CeilDiv(tiles, kStripTiles), threads) * threads);
}

void WinogradTransposed::Run(const Tensor& dy, const Tensor& w, const Normalisation& n,
                             const Tensor& dx) {
  CHECK(dx.shape == shape_.x() && w.shape == shape_.w() && dy.shape == shape_.y());
  if (!is_current_) Prepare(w.As<float>());
  const FixedScale fixed(n);
  const ChannelScale scale = {.channels = shape_.in_channels,
                              .slope = fixed.slope.data(),
                              .offset = fixed.offset.data(),
                              .least = n.relu ? 0.0F : -3.402823466e+38F};
  const int64_t all = shape_.batch * tile_rows_, strips = Strips();
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < strips; ++i) {
    const int64_t first = i * all / strips, last = (i + 1) * all / strips;
    Strip strip = {};
    strip.first = first, strip.last = last;
    strip.begin = FirstRow(first), strip.end = FirstRow(last);
    strip.small = dy.As<float>(), strip.large = dx.As<float>();
    RunStrip(&strip, scale);
  }
}

}  // namespace assay
