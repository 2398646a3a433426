// Synthetic CosmoFlow samples: cubes of particle counts at four redshifts, drawn from the matter
// power spectrum that belongs to the sample's four cosmological parameters.
//
// A sample is a pure function of (CosmoParameters, split, index): it does not depend on other
// samples, on threads or on order. Formulas and sources: docs/datasets.md.

#ifndef COMMON_DATASET_COSMO_SYNTH_H_
#define COMMON_DATASET_COSMO_SYNTH_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/dataset/example.h"
#include "common/dataset/layout.h"
#include "common/dataset/linear_theory.h"

namespace assay::dataset {

enum class CosmoMode {
  kLognormal,  // Poisson counts in a lognormal field: all four parameters can be learnt
  kZeldovich,  // particles displaced from a lattice: the real data's look, harder to learn
  kBeacon,     // the mean of channel c tells target c: easy, for tests of the machinery
  kShuffled,   // lognormal cubes with the targets of other cubes: nothing can be learnt
};

// "lognormal", "zeldovich", "beacon", "shuffled".
absl::string_view CosmoModeName(CosmoMode mode);
// INVALID_ARGUMENT for any other text, listing the names.
absl::StatusOr<CosmoMode> ParseCosmoMode(absl::string_view text);

// Parameter i is middle[i] + half[i] * target[i]; targets are uniform in [-1, 1).
struct CosmoRanges {
  absl::string_view name;
  std::array<double, kCosmoTargets> middle;
  std::array<double, kCosmoTargets> half;
};
// Omega_m 0.1 to 0.5, sigma_8 0.6 to 1.0, n_s 0.7 to 1.3, h 0.5 to 0.9.
inline constexpr CosmoRanges kWideRanges = {"wide", {0.3, 0.8, 1.0, 0.7}, {0.2, 0.2, 0.3, 0.2}};
struct CosmoParameters {
  CosmoMode mode = CosmoMode::kLognormal;
  CosmoRanges ranges = kWideRanges;
  uint64_t seed = 0;
  int edge = 32;          // voxels; a multiple of 32 up to 128, what five poolings of two allow
  double cell_mpc = 6.0;  // side of a voxel in Mpc (not Mpc/h, so that h shows as a scale)
  // Gives every Fourier mode its expected amplitude and only the phase at random (Angulo and
  // Pontzen 2016): without it h can hardly be learnt from one cube.
  bool fixed_amplitudes = true;
};

struct CosmoSample {
  std::vector<int16_t> counts;  // [edge, edge, edge, 4], channels at redshift 0, 0.5, 1.5, 3
  std::array<float, kCosmoTargets> targets;
};

// The targets that sample `index` of `split` carries.
std::array<float, kCosmoTargets> CosmoTargets(const CosmoParameters& parameters, Split split,
                                              uint32_t index);

// The cosmology that `targets` stand for.
Cosmology CosmologyFor(const CosmoRanges& ranges, const std::array<float, kCosmoTargets>& targets);

// Generates samples; holds the buffers and plans of one thread. Not thread-safe, but any number may
// exist.
class CosmoSynthesizer {
 public:
  // INVALID_ARGUMENT: the edge is not a multiple of 32 in 32..128, or the cell not in 1..32 Mpc.
  static absl::StatusOr<std::unique_ptr<CosmoSynthesizer>> Create(
      const CosmoParameters& parameters);
  ~CosmoSynthesizer();

  // `index` < 2^31. Takes milliseconds at 32^3, half a second at 128^3.
  CosmoSample Generate(Split split, uint32_t index);

 private:
  class Grid;
  CosmoSynthesizer(const CosmoParameters& parameters, std::unique_ptr<Grid> grid);

  void Lognormal(const Cosmology& cosmology, uint32_t key, std::vector<int16_t>* counts);
  void Zeldovich(const Cosmology& cosmology, uint32_t key, std::vector<int16_t>* counts);

  const CosmoParameters parameters_;
  const std::unique_ptr<Grid> grid_;
};

}  // namespace assay::dataset

#endif  // COMMON_DATASET_COSMO_SYNTH_H_
