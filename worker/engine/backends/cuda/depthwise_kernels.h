// Depthwise convolutions of kernel 3 in two dimensions: half of DeepCAM's layers, bound by memory.
//
// A thread takes kWidth channels, 16 bytes where it can, of a segment: places side by side in a row
// of the map. It goes along the segment and reads each column of the other map once: three places
// above each other, which belong to three results. Sums of nine numbers, or of a thread's segments,
// are in float. Stride 1, with any dilation, or stride 2 without one.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_DEPTHWISE_KERNELS_H_
#define WORKER_ENGINE_BACKENDS_CUDA_DEPTHWISE_KERNELS_H_

#include <cstdint>

#include "worker/engine/backends/cuda/map_kernels.h"
#include "worker/engine/backends/cuda/position.h"
#include "worker/engine/backends/cuda/vec.h"

namespace assay::cuda {

inline constexpr int kTaps = 9;

// A loop that hands registers on from pass to pass: three passes at once need no moves for it.
#ifdef __CUDA_ARCH__
#define ASSAY_UNROLL_RING _Pragma("unroll 3")
#else
#define ASSAY_UNROLL_RING
#endif

// How a map is cut into segments. With a dilation these are every dilation-th place of a row, so
// that what is next to a place for the kernel is next to it in its segment.
struct Segments {
  int32_t width;     // of the map that is looped over, or half of it (DepthwiseStridedData)
  int32_t dilation;  // between places of a segment
  int32_t length;    // places of one, at most
  Divisor height;    // of that map
  Divisor strips;    // segments of a row one after the other
  Divisor phases;    // and beside each other: dilation
  Divisor vectors;   // channels / kWidth
  int64_t channels;
  int64_t count;  // segments of all samples

  static Segments Of(int64_t batch, int64_t height, int32_t width, int32_t dilation, int32_t length,
                     int64_t channels, int64_t vectors) {
    const int64_t strip = int64_t{length} * dilation, strips = (width + strip - 1) / strip;
    return {width,   dilation, length,
            height,  strips,   dilation,
            vectors, channels, batch * height * strips * dilation};
  }
  friend bool operator==(const Segments&, const Segments&) = default;
};

// One of them: places first, first + dilation, ... before `end`, of row h of sample `batch`.
struct Segment {
  int64_t batch;
  int32_t h, first, end;

  ASSAY_DEVICE static Segment Of(const Segments& s, int64_t index) {
    const int64_t group = s.phases.Quotient(index), line = s.strips.Quotient(group);
    const int64_t batch = s.height.Quotient(line);
    const auto begin = static_cast<int32_t>(s.strips.Rest(group, line)) * s.length * s.dilation;
    const int32_t behind = begin + s.length * s.dilation;
    return {batch, static_cast<int32_t>(s.height.Rest(line, batch)),
            begin + static_cast<int32_t>(s.phases.Rest(index, group)),
            behind < s.width ? behind : s.width};
  }
};

template <typename T, int kWidth>
ASSAY_DEVICE void AddProducts(const Vec<T, kWidth>& vec, const float (&factors)[kWidth],
                              float (&sums)[kWidth]) {
  ASSAY_UNROLL
  for (int j = 0; j < kWidth; ++j)
    sums[j] += FloatAt(vec, j) * factors[j];
}

template <typename T, int kWidth>
ASSAY_DEVICE void ToFloats(const Vec<T, kWidth>& vec, float (&floats)[kWidth]) {
  ASSAY_UNROLL
  for (int j = 0; j < kWidth; ++j)
    floats[j] = FloatAt(vec, j);
}

// One by one: parameters lie side by side without gaps, so at no multiple of 16 bytes.
template <int kWidth>
ASSAY_DEVICE void LoadWeights(const float* from, float (&weights)[kWidth]) {
  ASSAY_UNROLL
  for (int j = 0; j < kWidth; ++j)
    weights[j] = from[j];
}

// Rows of a map above, at and below row `at` of it, `dilation` apart: offsets of their first place,
// and whether they are there.
struct RowTriple {
  int64_t offsets[3];
  bool are_inside[3];

  ASSAY_DEVICE static RowTriple Of(int64_t batch, int32_t at, int32_t dilation, int32_t height,
                                   int64_t pitch) {
    RowTriple rows;
    ASSAY_UNROLL
    for (int r = 0; r < 3; ++r) {
      const int32_t h = at + (r - 1) * dilation;
      rows.are_inside[r] = h >= 0 && h < height;
      rows.offsets[r] = (batch * height + h) * pitch;
    }
    return rows;
  }
};

// What turns a map into another: nine weights for each of kWidth channels and what is added; both
// with a batch normalisation, if there is one.
template <int kWidth>
struct DepthwiseFilter {
  float weights[kTaps][kWidth];
  float addends[kWidth];

  // `flips`: for gradients of data, taps are in the other order.
  ASSAY_DEVICE static DepthwiseFilter Of(const float* w, int64_t channels, int64_t c, bool flips,
                                         const ChannelTerms& terms) {
    DepthwiseFilter filter;
    ASSAY_UNROLL
    for (int k = 0; k < kTaps; ++k)
      LoadWeights(w + (flips ? kTaps - 1 - k : k) * channels + c, filter.weights[k]);
    ASSAY_UNROLL
    for (int j = 0; j < kWidth; ++j)
      filter.addends[j] = 0;
    if (terms.mean != nullptr) filter.Normalise(terms, c);
    return filter;
  }
  ASSAY_DEVICE void Normalise(const ChannelTerms& terms, int64_t c) {
    ASSAY_UNROLL
    for (int j = 0; j < kWidth; ++j) {
      const ChannelTerm term = terms.At(c + j);
      addends[j] = term.Addend();
      ASSAY_UNROLL
      for (int k = 0; k < kTaps; ++k)
        weights[k][j] *= term.Factor();
    }
  }
  ASSAY_DEVICE void Start(float (&sums)[kWidth]) const {
    ASSAY_UNROLL
    for (int j = 0; j < kWidth; ++j)
      sums[j] = addends[j];
  }
};

template <typename T, int kWidth>
ASSAY_DEVICE void StoreSums(const float (&sums)[kWidth], bool relu, T* to) {
  Vec<T, kWidth> vec;
  ASSAY_UNROLL
  for (int j = 0; j < kWidth; ++j)
    vec.values[j] = T(relu && sums[j] < 0 ? 0 : sums[j]);
  StoreVec(vec, to);
}

// At stride 1: y from x, or the gradient of x from that of y.
template <typename T, int kWidth>
struct Depthwise {
  static constexpr bool kNeedsRegisters = true;

  const T* from;
  const float* w;  // (3, 3, 1, channels)
  T* to;
  bool flips;             // for the gradient
  ChannelTerms channels;  // normalise y, unless they have no mean
  Segments segments;
  int64_t count;  // segments * vectors of channels

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Cell cell = CellOf(i, segments.vectors);
    const int64_t c = cell.column * kWidth, pitch = segments.width * segments.channels;
    const int64_t stride = segments.dilation * segments.channels;
    const auto filter = DepthwiseFilter<kWidth>::Of(w, segments.channels, c, flips, channels);
    const Segment at = Segment::Of(segments, cell.row);
    const int32_t step = segments.dilation;
    const auto rows =
        RowTriple::Of(at.batch, at.h, step, static_cast<int32_t>(segments.height.value), pitch);
    float sums[3][kWidth];  // of the results to the left, in and to the right of a column
    ASSAY_UNROLL
    for (int s = 0; s < 3; ++s)
      filter.Start(sums[s]);
    int64_t offset = at.first * segments.channels + c - stride;
    T* result = to + rows.offsets[1] + offset - stride;  // of the one to the left of a column
    ASSAY_UNROLL_RING
    for (int32_t x = at.first - step; x - step < at.end; x += step) {
      if (x >= 0 && x < segments.width) AddColumn(rows, offset, filter, sums);
      if (x - step >= at.first) StoreSums(sums[0], channels.relu, result);
      ASSAY_UNROLL
      for (int j = 0; j < kWidth; ++j) {
        sums[0][j] = sums[1][j];
        sums[1][j] = sums[2][j];
        sums[2][j] = filter.addends[j];
      }
      offset += stride;
      result += stride;
    }
  }

  ASSAY_DEVICE void AddColumn(const RowTriple& rows, int64_t offset,
                              const DepthwiseFilter<kWidth>& filter,
                              float (&sums)[3][kWidth]) const {
    Vec<T, kWidth> column[3];
    ASSAY_UNROLL
    for (int r = 0; r < 3; ++r)
      column[r] = VecIf<kWidth>(rows.are_inside[r], from, rows.offsets[r] + offset);
    ASSAY_UNROLL
    for (int r = 0; r < 3; ++r)
      for (int s = 0; s < 3; ++s)
        AddProducts(column[r], filter.weights[r * 3 + 2 - s], sums[s]);
  }
  friend bool operator==(const Depthwise&, const Depthwise&) = default;
};

// At stride 2: y from x.
template <typename T, int kWidth>
struct DepthwiseStrided {
  static constexpr bool kNeedsRegisters = true;

  const T* x;
  const float* w;
  T* y;
  ChannelTerms channels;
  int32_t height, width;  // of x
  Segments segments;      // of y
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Cell cell = CellOf(i, segments.vectors);
    const int64_t c = cell.column * kWidth;
    const auto filter = DepthwiseFilter<kWidth>::Of(w, segments.channels, c, false, channels);
    const Segment at = Segment::Of(segments, cell.row);
    const auto rows = RowTriple::Of(at.batch, 2 * at.h, 1, height, width * segments.channels);
    const int64_t line = at.batch * segments.height.value + at.h;
    int64_t offset = 2 * at.first * segments.channels + c;  // of the column in the middle
    Vec<T, kWidth> left[3];
    ASSAY_UNROLL
    for (int r = 0; r < 3; ++r)
      left[r] = VecIf<kWidth>(rows.are_inside[r] && at.first > 0, x,
                              rows.offsets[r] + offset - segments.channels);
    T* to = y + (line * segments.width + at.first) * segments.channels + c;
    for (int32_t v = at.first; v < at.end; ++v) {
      float sums[kWidth];
      filter.Start(sums);
      ASSAY_UNROLL
      for (int r = 0; r < 3; ++r) {
        const int64_t from = rows.offsets[r] + offset;
        const Vec<T, kWidth> middle = VecIf<kWidth>(rows.are_inside[r], x, from);
        const Vec<T, kWidth> right =
            VecIf<kWidth>(rows.are_inside[r] && 2 * v + 1 < width, x, from + segments.channels);
        AddProducts(left[r], filter.weights[r * 3], sums);
        AddProducts(middle, filter.weights[r * 3 + 1], sums);
        AddProducts(right, filter.weights[r * 3 + 2], sums);
        left[r] = right;
      }
      StoreSums(sums, channels.relu, to);
      offset += 2 * segments.channels;
      to += segments.channels;
    }
  }
  friend bool operator==(const DepthwiseStrided&, const DepthwiseStrided&) = default;
};

// At stride 2: the gradient of x from that of y, by pairs of places. An even row of x is read by
// the kernel's row in the middle alone, an odd one by the last of one row of y and the first of the
// next; columns alike.
template <typename T, int kWidth>
struct DepthwiseStridedData {
  const T* dy;
  const float* w;
  T* dx;
  int32_t height, width;  // of y
  int32_t in_width;       // of x
  Segments segments;      // of pairs in x
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Cell cell = CellOf(i, segments.vectors);
    const int64_t c = cell.column * kWidth, channels = segments.channels;
    const Segment at = Segment::Of(segments, cell.row);
    const bool is_odd = at.h % 2 != 0, has_next = is_odd && at.h / 2 + 1 < height;
    float weights[2][3][kWidth];  // of both rows of y
    ASSAY_UNROLL
    for (int k = 0; k < 3; ++k) {
      LoadWeights(w + ((is_odd ? 6 : 3) + k) * channels + c, weights[0][k]);
      LoadWeights(w + k * channels + c, weights[1][k]);
    }
    const int64_t row = (at.batch * height + at.h / 2) * width * channels + c;
    const bool are_inside[2] = {true, has_next};
    const T* const rows[2] = {dy + row, dy + row + width * channels};
    Vec<T, kWidth> here[2];
    ASSAY_UNROLL
    for (int r = 0; r < 2; ++r)
      here[r] = VecIf<kWidth>(are_inside[r], rows[r], at.first * channels);
    const int64_t line = at.batch * segments.height.value + at.h;
    T* to = dx + (line * in_width + 2 * at.first) * channels + c;
    for (int32_t v = at.first; v < at.end; ++v, to += 2 * channels) {
      float even[kWidth] = {}, odd[kWidth] = {};
      ASSAY_UNROLL
      for (int r = 0; r < 2; ++r) {
        const Vec<T, kWidth> next =
            VecIf<kWidth>(are_inside[r] && v + 1 < width, rows[r], (v + 1) * channels);
        AddProducts(here[r], weights[r][1], even);
        AddProducts(here[r], weights[r][2], odd);
        AddProducts(next, weights[r][0], odd);
        here[r] = next;
      }
      StoreSums(even, false, to);
      if (2 * v + 1 < in_width) StoreSums(odd, false, to + channels);
    }
  }
  friend bool operator==(const DepthwiseStridedData&, const DepthwiseStridedData&) = default;
};

// Nine sums for each of kWidth channels, over a thread's segments.
template <int kWidth>
struct TapSums {
  float of[kTaps][kWidth];

  ASSAY_DEVICE void Store(int64_t row, int64_t channels, int64_t c, float* sums) const {
    ASSAY_UNROLL
    for (int k = 0; k < kTaps; ++k) {
      Vec<float, kWidth> vec;
      ASSAY_UNROLL
      for (int j = 0; j < kWidth; ++j)
        vec.values[j] = of[k][j];
      StoreVec(vec, sums + (row * kTaps + k) * channels + c);
    }
  }
};

// At stride 1: gradients of the weights.
template <typename T, int kWidth>
struct DepthwiseTaps {
  static constexpr bool kNeedsRegisters = true;

  const T* x;
  const T* dy;
  float* sums;  // (threads, 3, 3, 1, channels)
  int64_t threads;
  Segments segments;
  int64_t count;  // threads * vectors of channels

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Cell cell = CellOf(i, segments.vectors);
    const int64_t c = cell.column * kWidth;
    TapSums<kWidth> taps = {};
    for (int64_t index = cell.row; index < segments.count; index += threads)
      AddSegment(Segment::Of(segments, index), c, &taps);
    taps.Store(cell.row, segments.channels, c, sums);
  }

  ASSAY_DEVICE void AddSegment(const Segment& at, int64_t c, TapSums<kWidth>* taps) const {
    const int32_t step = segments.dilation;
    const int64_t pitch = segments.width * segments.channels, stride = step * segments.channels;
    const auto rows =
        RowTriple::Of(at.batch, at.h, step, static_cast<int32_t>(segments.height.value), pitch);
    float ring[3][kWidth] = {};  // dy to the left, in and to the right of a column
    int64_t offset = (at.first - step) * segments.channels + c;
    ASSAY_UNROLL_RING
    for (int32_t column = at.first - step; column - step < at.end; column += step) {
      ToFloats(VecIf<kWidth>(column + step < at.end, dy, rows.offsets[1] + offset + stride),
               ring[2]);
      const bool is_inside = column >= 0 && column < segments.width;
      ASSAY_UNROLL
      for (int r = 0; r < 3; ++r) {
        const Vec<T, kWidth> vec =
            VecIf<kWidth>(is_inside && rows.are_inside[r], x, rows.offsets[r] + offset);
        ASSAY_UNROLL
        for (int s = 0; s < 3; ++s)
          AddProducts(vec, ring[s], taps->of[r * 3 + 2 - s]);
      }
      ASSAY_UNROLL
      for (int j = 0; j < kWidth; ++j) {
        ring[0][j] = ring[1][j];
        ring[1][j] = ring[2][j];
      }
      offset += stride;
    }
  }
  friend bool operator==(const DepthwiseTaps&, const DepthwiseTaps&) = default;
};

// At stride 2: the same.
template <typename T, int kWidth>
struct DepthwiseStridedTaps {
  static constexpr bool kNeedsRegisters = true;

  const T* x;
  const T* dy;
  float* sums;
  int64_t threads;
  int32_t height, width;  // of x
  Segments segments;      // of y
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Cell cell = CellOf(i, segments.vectors);
    const int64_t c = cell.column * kWidth;
    TapSums<kWidth> taps = {};
    for (int64_t index = cell.row; index < segments.count; index += threads)
      AddSegment(Segment::Of(segments, index), c, &taps);
    taps.Store(cell.row, segments.channels, c, sums);
  }

  ASSAY_DEVICE void AddSegment(const Segment& at, int64_t c, TapSums<kWidth>* taps) const {
    const int64_t channels = segments.channels;
    const auto rows = RowTriple::Of(at.batch, 2 * at.h, 1, height, width * channels);
    const int64_t line = at.batch * segments.height.value + at.h;
    int64_t from = (line * segments.width + at.first) * channels + c;
    int64_t offset = 2 * at.first * channels + c;  // of the column in the middle
    Vec<T, kWidth> left[3];
    ASSAY_UNROLL
    for (int r = 0; r < 3; ++r)
      left[r] =
          VecIf<kWidth>(rows.are_inside[r] && at.first > 0, x, rows.offsets[r] + offset - channels);
    for (int32_t v = at.first; v < at.end; ++v, from += channels, offset += 2 * channels) {
      float gradient[kWidth];
      ToFloats(VecAt<kWidth>(dy + from), gradient);
      ASSAY_UNROLL
      for (int r = 0; r < 3; ++r) {
        const int64_t middle = rows.offsets[r] + offset;
        const bool has_right = rows.are_inside[r] && 2 * v + 1 < width;
        AddProducts(left[r], gradient, taps->of[r * 3]);
        AddProducts(VecIf<kWidth>(rows.are_inside[r], x, middle), gradient, taps->of[r * 3 + 1]);
        left[r] = VecIf<kWidth>(has_right, x, middle + channels);
        AddProducts(left[r], gradient, taps->of[r * 3 + 2]);
      }
    }
  }
  friend bool operator==(const DepthwiseStridedTaps&, const DepthwiseStridedTaps&) = default;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_DEPTHWISE_KERNELS_H_
