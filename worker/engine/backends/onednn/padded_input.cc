#include "worker/engine/backends/onednn/padded_input.h"

#include <algorithm>

namespace assay {
namespace {

// Calls visit(sample, padded line within the sample, offset of the line in x or -1 for padding) for
// every padded line (depth, height) of the batch. x has `channels`.
template <typename Visit>
void ForEachLine(const PaddedInput& in, int64_t channels, Visit visit) {
  const int64_t lines = in.depth * in.height;
  const int64_t line_size = in.conv.input[2] * channels;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < in.conv.batch * lines; ++i) {
    const int64_t sample = i / lines, line = i % lines;
    const int64_t d = line / in.height - in.conv.pad_before[0];
    const int64_t h = line % in.height - in.conv.pad_before[1];
    const bool is_inside = d >= 0 && d < in.conv.input[0] && h >= 0 && h < in.conv.input[1];
    const int64_t source = (sample * in.conv.input[0] + d) * in.conv.input[1] + h;
    visit(sample, line, is_inside ? source * line_size : -1);
  }
}

// Moves channel c of a line to `planes` + c * `stride`.
void Split(const float* line, int64_t width, int64_t channels, int64_t stride, float* planes) {
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t w = 0; w < width; ++w)
      planes[c * stride + w] = line[w * channels + c];
}

// The same for four channels, which compilers turn into shuffles of vectors.
void SplitFour(const float* line, int64_t width, int64_t stride, float* planes) {
  float* __restrict first = planes;
  float* __restrict second = planes + stride;
  float* __restrict third = planes + 2 * stride;
  float* __restrict fourth = planes + 3 * stride;
  for (int64_t w = 0; w < width; ++w) {
    first[w] = line[4 * w];
    second[w] = line[4 * w + 1];
    third[w] = line[4 * w + 2];
    fourth[w] = line[4 * w + 3];
  }
}

// Pairs the channels of a line; `stride` from one pair's plane to the next.
void SplitPairs(const float* line, int64_t width, int64_t channels, int64_t stride,
                Bf16Pair* planes) {
  for (int64_t c = 0; c < channels; c += 2)
    for (int64_t w = 0; w < width; ++w) {
      const float* voxel = line + w * channels + c;
      planes[c / 2 * stride + w] = {Bfloat16(voxel[0]),
                                    Bfloat16(c + 1 < channels ? voxel[1] : 0.0F)};
    }
}

// The same for four channels, which needs no shuffles: a voxel is two pairs.
void SplitTwoPairs(const float* line, int64_t width, int64_t stride, Bf16Pair* planes) {
  Bf16Pair* __restrict first = planes;
  Bf16Pair* __restrict second = planes + stride;
  for (int64_t w = 0; w < width; ++w) {
    const float* voxel = line + 4 * w;
    first[w] = {Bfloat16(voxel[0]), Bfloat16(voxel[1])};
    second[w] = {Bfloat16(voxel[2]), Bfloat16(voxel[3])};
  }
}

}  // namespace

PaddedInput::PaddedInput(const ConvShape& of_conv)
    : conv(of_conv),
      depth(conv.input[0] + conv.pad_before[0] + conv.pad_after[0]),
      height(conv.input[1] + conv.pad_before[1] + conv.pad_after[1]),
      width(conv.input[2] + conv.pad_before[2] + conv.pad_after[2]) {}

int64_t PaddedInput::sample_stride() const {
  const int64_t elements = depth * height * width * conv.in_channels;
  return (elements + 2 * kLanes - 1) / kLanes * kLanes;
}

size_t PaddedInput::bytes() const {
  return static_cast<size_t>(conv.batch * sample_stride()) * sizeof(float);
}

int64_t PaddedInput::bf16_sample_stride() const {
  const int64_t elements = depth * height * width * conv.in_channels;
  return (elements + 3 * kLanes - 1) / (2 * kLanes) * (2 * kLanes);
}

size_t PaddedInput::bf16_bytes() const {
  return static_cast<size_t>(conv.batch * bf16_sample_stride()) * sizeof(Bfloat16);
}

void PadPlanar(const PaddedInput& input, const float* x, float* planar) {
  const int64_t channels = input.conv.in_channels, before = input.conv.pad_before[2];
  const int64_t volume = input.depth * input.height * input.width, width = input.conv.input[2];
  ForEachLine(input, input.conv.in_channels, [&](int64_t sample, int64_t line, int64_t source) {
    float* target = planar + sample * input.sample_stride() + line * input.width;
    for (int64_t c = 0; c < channels; ++c)
      std::fill_n(target + c * volume, input.width, 0.0F);
    if (source < 0) return;
    if (channels == 4)
      SplitFour(x + source, width, volume, target + before);
    else
      Split(x + source, width, channels, volume, target + before);
  });
}

void PadInterleaved(const PaddedInput& input, const float* x, float* interleaved) {
  const int64_t channels = input.conv.in_channels, line_size = input.width * channels;
  const int64_t before = input.conv.pad_before[2] * channels;
  const int64_t count = input.conv.input[2] * channels;
  const int64_t used = input.depth * input.height * line_size;
  ForEachLine(input, input.conv.in_channels, [&](int64_t sample, int64_t line, int64_t source) {
    float* target = interleaved + sample * input.sample_stride() + line * line_size;
    if (source >= 0) {
      std::fill_n(target, before, 0.0F);
      std::copy_n(x + source, count, target + before);
      std::fill_n(target + before + count, line_size - before - count, 0.0F);
    } else {
      std::fill_n(target, line_size, 0.0F);
    }
  });
  for (int64_t sample = 0; sample < input.conv.batch; ++sample)
    std::fill_n(interleaved + sample * input.sample_stride() + used, input.sample_stride() - used,
                0.0F);
}

void PadInterleavedBf16(const PaddedInput& input, const float* x, Bfloat16* interleaved) {
  const int64_t channels = input.conv.in_channels, line_size = input.width * channels;
  const int64_t before = input.conv.pad_before[2] * channels;
  const int64_t count = input.conv.input[2] * channels;
  const int64_t used = input.depth * input.height * line_size;
  const int64_t stride = input.bf16_sample_stride();
  const Bfloat16 zero(0.0F);
  ForEachLine(input, channels, [&](int64_t sample, int64_t line, int64_t source) {
    Bfloat16* target = interleaved + sample * stride + line * line_size;
    if (source < 0) {
      std::fill_n(target, line_size, zero);
      return;
    }
    std::fill_n(target, before, zero);
    CastToBf16({x + source, static_cast<size_t>(count)}, target + before);
    std::fill_n(target + before + count, line_size - before - count, zero);
  });
  for (int64_t sample = 0; sample < input.conv.batch; ++sample)
    std::fill_n(interleaved + sample * stride + used, stride - used, zero);
}

void PadPairs(const PaddedInput& planes, int64_t channels, const float* x, Bf16Pair* planar) {
  const int64_t before = planes.conv.pad_before[2], width = planes.conv.input[2];
  const int64_t volume = planes.depth * planes.height * planes.width;
  const Bf16Pair zero = {Bfloat16(0.0F), Bfloat16(0.0F)};
  ForEachLine(planes, channels, [&](int64_t sample, int64_t line, int64_t source) {
    Bf16Pair* target = planar + sample * planes.sample_stride() + line * planes.width;
    for (int64_t pair = 0; pair < planes.conv.in_channels; ++pair)
      std::fill_n(target + pair * volume, planes.width, zero);
    if (source < 0) return;
    if (channels == 4)
      SplitTwoPairs(x + source, width, volume, target + before);
    else
      SplitPairs(x + source, width, channels, volume, target + before);
  });
}

void CropInterleaved(const PaddedInput& input, const float* interleaved, float* x) {
  const int64_t channels = input.conv.in_channels, line_size = input.width * channels;
  const int64_t before = input.conv.pad_before[2] * channels;
  ForEachLine(input, input.conv.in_channels, [&](int64_t sample, int64_t line, int64_t target) {
    if (target < 0) return;
    std::copy_n(interleaved + sample * input.sample_stride() + line * line_size + before,
                input.conv.input[2] * channels, x + target);
  });
}

}  // namespace assay
