// One CosmoFlow sample in its stored form: a tf.train.Example message with two features.
//
//   "x": bytes_list with one value, little-endian int16 counts [D,H,W,4], channel fastest
//   "y": float_list with four float32: normalised Omega_m, sigma_8, n_s, H_0
//
// The parser accepts what any protobuf writer may produce (features in either order, packed and
// unpacked floats, unknown fields) and copies nothing: the voxels stay where they are.

#ifndef COMMON_DATASET_EXAMPLE_H_
#define COMMON_DATASET_EXAMPLE_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace assay::dataset {

inline constexpr int kCosmoChannels = 4;
inline constexpr int kCosmoTargets = 4;

// Values of one cube: edge^3 * 4.
constexpr int64_t CosmoValues(int64_t edge) {
  return edge * edge * edge * kCosmoChannels;
}

// The features of a tf.train.Example that CosmoFlow uses.
struct ExampleView {
  absl::string_view x;  // points into the parsed message
  std::vector<float> y;
};

// Parses a tf.train.Example. `message` must outlive the result.
// DATA_LOSS, with the offset in the message: malformed, or a feature "x" or "y" of another type; a
// missing feature is empty in the result.
absl::StatusOr<ExampleView> ParseExample(absl::string_view message);

struct CosmoSampleView {
  absl::string_view voxels;  // CosmoValues(edge) little-endian int16, unaligned
  std::array<float, kCosmoTargets> targets;
};

// As ParseExample, and checks the shape.
// DATA_LOSS: another number of voxels or targets, or a target that is not finite.
absl::StatusOr<CosmoSampleView> ParseCosmoSample(absl::string_view message, int edge);

// DATA_LOSS: a count is negative, so that ln(1 + count) is not a number. Reads all voxels.
absl::Status CheckCounts(const CosmoSampleView& sample);

// The message for a cube, features in the order x, y: byte for byte what the benchmark's own
// preparation writes.
//   counts: CosmoValues(edge) values for some edge.
std::string EncodeCosmoSample(std::span<const int16_t> counts,
                              const std::array<float, kCosmoTargets>& targets);

}  // namespace assay::dataset

#endif  // COMMON_DATASET_EXAMPLE_H_
