#include "worker/engine/backend.h"

namespace assay {

ConvShape SameConv(int64_t batch, std::array<int64_t, 3> input, int64_t in_channels,
                   int64_t out_channels, int64_t kernel) {
  const int64_t before = (kernel - 1) / 2, after = kernel / 2;
  return {.batch = batch,
          .input = input,
          .in_channels = in_channels,
          .out_channels = out_channels,
          .kernel = kernel,
          .pad_before = {before, before, before},
          .pad_after = {after, after, after}};
}

}  // namespace assay
