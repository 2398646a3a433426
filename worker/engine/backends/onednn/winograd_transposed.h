// A transposed convolution of kernel 3 and stride 2 by Winograd's algorithm, for evaluation.
//
// Along an axis, results at even places see one tap, those at odd places two taps of neighbouring
// inputs: three of them take four products by Winograd's F(3, 2), which has the points and hence
// the rounding of the well-known F(2, 3). A tile of 3x3 inputs takes 49 products for each pair of
// channels instead of 81 (docs/adr/0260-transposed-convolutions-by-winograd.md).

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_WINOGRAD_TRANSPOSED_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_WINOGRAD_TRANSPOSED_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "worker/engine/maps.h"

namespace assay {

// Memory that threads borrow for some rows of work, and that all layers of a backend share.
// Thread-safe.
class StripMemory {
 public:
  // At least `count` numbers, of no particular value.
  std::vector<float> Take(size_t count);
  void GiveBack(std::vector<float> memory);

 private:
  std::mutex mutex_;
  std::vector<std::vector<float>> free_;
};

// What results become: y = x * slope + offset, at least `least`, channel by channel.
struct ChannelScale {
  int64_t channels;
  const float* slope;
  const float* offset;
  float least;
};

// The gradient of x of a convolution with stride 2, normalised. "Small" is that convolution's
// result, which we read; "large" its x, which we write.
class WinogradTransposed {
 public:
  // Whether this is faster than products with all weights: kernel 3, stride 2, dense, channels and
  // pixels enough to fill products.
  static bool CanDo(const Conv2dShape& shape);
  // `memory` must outlive this.
  WinogradTransposed(const Conv2dShape& shape, StripMemory* memory);

  // After this the next Run prepares its weights anew.
  void WeightsChanged() { is_current_ = false; }
  // As Convolution::BackwardDataNormalised; always offered. An error of oneDNN ends the process
  // with ExitCode::kBackend.
  void Run(const Tensor& dy, const Tensor& w, const Normalisation& n, const Tensor& dx);

 private:
  struct Strip;
  // Of a result: its row and column of the small map, from those of a tile and of the map on.
  struct Place {
    int64_t down, across;
    int64_t is_odd_row, is_odd_column;
  };

  // What each weight of tiles is for: an even place, or one of the four products for odd ones.
  static constexpr int64_t kKinds = 5;

  void Prepare(const float* w);
  const float* Weights(int64_t row_kind, int64_t column_kind) const;
  int64_t FirstRow(int64_t tile_row) const;
  float* Result(const Strip& strip, int64_t tile_row, const Place& at) const;
  int64_t Strips() const;
  void RunStrip(Strip* strip, const ChannelScale& scale) const;
  void EvenRows(const Strip& strip, const ChannelScale& scale) const;
  void OddRows(const Strip& strip, const ChannelScale& scale) const;
  void MixRows(const Strip& strip, int64_t part) const;
  void MixColumns(const Strip& strip, const float* rows, int64_t count, int64_t part) const;
  void PutAcross(const Strip& strip, const ChannelScale& scale, int64_t distance,
                 const float* products, int64_t tile_row, Place at) const;
  void PutOddRows(const Strip& strip, const ChannelScale& scale, int64_t even_size,
                  int64_t odd_size) const;

  const Conv2dShape shape_;
  const int64_t height_, width_;            // of the small map
  const int64_t tile_rows_, tile_columns_;  // of one sample
  StripMemory* const memory_;
  bool is_current_ = false;
  std::vector<float> weights_;  // (5, 5, filters, C)
  std::vector<float> zeros_;    // a row beyond the small map
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_WINOGRAD_TRANSPOSED_H_
