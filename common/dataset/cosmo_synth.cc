#include "common/dataset/cosmo_synth.h"

#include <fftw3.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/dataset/fourier.h"
#include "common/dataset/poisson.h"
#include "common/mutex.h"
#include "common/random.h"

namespace assay::dataset {
namespace {

using Complex = std::complex<double>;

constexpr std::array<double, kCosmoChannels> kRedshifts = {0, 0.5, 1.5, 3};
constexpr double kMeanCount = 16;      // of the lognormal field, per voxel
constexpr double kMaxLogDensity = 6;   // keeps counts far inside int16
constexpr double kMaxCount = 32000;    // of an int16
constexpr double kBeaconContrast = 2;  // ln(1 + mean count) = contrast * (1 + target)

// Parts of a sample that draw from streams of their own. Never renumber: datasets are reproduced by
// seed.
enum Part : uint32_t { kTargetPart = 0, kPhasePart = 1, kShuffledTargetPart = 2, kCountPart = 8 };

uint32_t SampleKey(Split split, uint32_t index) {
  constexpr uint32_t kValidationBit = uint32_t{1} << 31;
  return split == Split::kValidation ? index | kValidationBit : index;
}

std::array<float, kCosmoTargets> DrawTargets(uint64_t seed, uint32_t key, Part part) {
  const Stream stream(seed, Purpose::kDataset, key, part);
  std::array<float, kCosmoTargets> targets{};
  for (size_t i = 0; i < kCosmoTargets; ++i)
    targets[i] = 2 * stream.Uniform(i) - 1;
  return targets;
}

// Fills channel `channel` with Poisson numbers; mean_at(voxel) is their mean.
template <typename MeanAt>
void FillCounts(const Stream& stream, size_t channel, MeanAt mean_at,
                std::vector<int16_t>* counts) {
  const size_t voxels = counts->size() / kCosmoChannels;
  for (size_t voxel = 0; voxel < voxels; ++voxel) {
    const double count = Poisson(mean_at(voxel), stream, voxel, voxels);
    (*counts)[voxel * kCosmoChannels + channel] = static_cast<int16_t>(std::min(count, kMaxCount));
  }
}

void Beacon(uint64_t seed, uint32_t key, const std::array<float, kCosmoTargets>& targets,
            std::vector<int16_t>* counts) {
  for (uint32_t c = 0; c < kCosmoChannels; ++c) {
    const double mean = std::expm1(kBeaconContrast * (1.0 + targets[c]));
    FillCounts(
        Stream(seed, Purpose::kDataset, key, kCountPart + c), c, [mean](size_t) { return mean; },
        counts);
  }
}

}  // namespace

// A cube of N^3 real numbers and the half-space of N*N*(N/2+1) Fourier modes that belongs to it.
//
// Double precision, although the counts need less: rounding differs between processors, and in
// single precision it would change a few counts in every thousand samples.
class CosmoSynthesizer::Grid {
 public:
  explicit Grid(int edge)
      : edge_(edge),
        half_(edge / 2 + 1),
        real_(MakeFftwArray<double>(voxels())),
        modes_(MakeFftwArray<Complex>(mode_count())) {
    MutexLock lock(&FftwPlannerMutex());
    // FFTW_ESTIMATE: no timing decides, so the same plan every time.
    forward_ = fftw_plan_dft_r2c_3d(edge, edge, edge, real_.get(), FftwModes(), FFTW_ESTIMATE);
    backward_ = fftw_plan_dft_c2r_3d(edge, edge, edge, FftwModes(), real_.get(), FFTW_ESTIMATE);
  }
  ~Grid() {
    MutexLock lock(&FftwPlannerMutex());
    fftw_destroy_plan(forward_);
    fftw_destroy_plan(backward_);
  }
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  int edge() const { return edge_; }
  size_t voxels() const { return Extent(edge_) * Extent(edge_) * Extent(edge_); }
  size_t mode_count() const { return Extent(edge_) * Extent(edge_) * Extent(half_); }
  double* real() { return real_.get(); }
  Complex* modes() { return modes_.get(); }

  // Transforms the modes to the cube, without a factor; destroys the modes.
  void Backward() { fftw_execute(backward_); }

  // Sets the modes to those of white noise of unit variance, or to their phases alone.
  void SetWhiteNoise(const Stream& stream, bool fixed_amplitudes) {
    for (size_t i = 0; i < voxels(); ++i)
      real_[i] = stream.Normal(i);
    fftw_execute(forward_);
    const double scale = 1 / std::sqrt(static_cast<double>(voxels()));
    for (size_t i = 0; i < mode_count(); ++i) {
      const double size = std::abs(modes_[i]);
      modes_[i] *= !fixed_amplitudes ? scale : size > 0 ? 1 / size : 0;
    }
  }

  // Scales mode n by amplitude[|n|^2] and returns the variance that the cube will have on average.
  double Scale(const std::vector<double>& amplitude) {
    double variance = 0;
    ForEachMode([&](size_t i, const std::array<int, 3>& n) {
      const double a = amplitude[static_cast<size_t>(SquaredLength(n))];
      modes_[i] *= a;
      const bool has_mirror = n[2] != 0 && n[2] != edge_ / 2;
      variance += (has_mirror ? 2 : 1) * a * a;
    });
    return variance;
  }

  // Calls body(index, n) for every mode, n its wave vector in units of 2 pi / box.
  template <typename Body>
  void ForEachMode(Body body) const {
    size_t i = 0;
    for (int x = 0; x < edge_; ++x)
      for (int y = 0; y < edge_; ++y)
        for (int z = 0; z < half_; ++z)
          body(i++, std::array<int, 3>{Frequency(x), Frequency(y), z});
  }

  static int SquaredLength(const std::array<int, 3>& n) {
    return n[0] * n[0] + n[1] * n[1] + n[2] * n[2];
  }

 private:
  static size_t Extent(int extent) { return static_cast<size_t>(extent); }
  int Frequency(int i) const { return i <= edge_ / 2 ? i : i - edge_; }
  fftw_complex* FftwModes() { return reinterpret_cast<fftw_complex*>(modes_.get()); }

  const int edge_;
  const int half_;
  const FftwArray<double> real_;
  const FftwArray<Complex> modes_;
  fftw_plan forward_ = nullptr;
  fftw_plan backward_ = nullptr;
};

namespace {

// sqrt(P(k) / L^3) for every |n|^2 that occurs: the amplitude of a mode in a box of `box` Mpc/h.
std::vector<double> ModeAmplitudes(const Cosmology& cosmology, int edge, double box) {
  const PowerSpectrum spectrum(cosmology);
  const int max_square = 3 * (edge / 2) * (edge / 2);
  std::vector<double> amplitudes(static_cast<size_t>(max_square) + 1, 0.0);
  for (int square = 1; square <= max_square; ++square) {
    const double k = 2 * std::numbers::pi * std::sqrt(square) / box;
    amplitudes[static_cast<size_t>(square)] = std::sqrt(spectrum(k) / (box * box * box));
  }
  return amplitudes;
}

// The voxel, wrapped around the cube's edge, in which a coordinate lies.
size_t Wrap(double coordinate, int edge) {
  const int64_t cell = static_cast<int64_t>(std::floor(coordinate)) % edge;
  return static_cast<size_t>(cell < 0 ? cell + edge : cell);
}

}  // namespace

absl::string_view CosmoModeName(CosmoMode mode) {
  switch (mode) {
    case CosmoMode::kLognormal:
      return "lognormal";
    case CosmoMode::kZeldovich:
      return "zeldovich";
    case CosmoMode::kBeacon:
      return "beacon";
    case CosmoMode::kShuffled:
      return "shuffled";
  }
  return "";
}

absl::StatusOr<CosmoMode> ParseCosmoMode(absl::string_view text) {
  for (const CosmoMode mode :
       {CosmoMode::kLognormal, CosmoMode::kZeldovich, CosmoMode::kBeacon, CosmoMode::kShuffled})
    if (text == CosmoModeName(mode)) return mode;
  return absl::InvalidArgumentError(
      absl::StrCat("mode \"", text, "\" is none of lognormal, zeldovich, beacon, shuffled"));
}

std::array<float, kCosmoTargets> CosmoTargets(const CosmoParameters& parameters, Split split,
                                              uint32_t index) {
  const bool shuffled = parameters.mode == CosmoMode::kShuffled;
  return DrawTargets(parameters.seed, SampleKey(split, index),
                     shuffled ? kShuffledTargetPart : kTargetPart);
}

Cosmology CosmologyFor(const CosmoRanges& ranges, const std::array<float, kCosmoTargets>& targets) {
  const auto value = [&](size_t i) { return ranges.middle[i] + ranges.half[i] * targets[i]; };
  return {.omega_m = value(0), .sigma_8 = value(1), .n_s = value(2), .h = value(3)};
}

CosmoSynthesizer::CosmoSynthesizer(const CosmoParameters& parameters, std::unique_ptr<Grid> grid)
    : parameters_(parameters), grid_(std::move(grid)) {}

CosmoSynthesizer::~CosmoSynthesizer() = default;

absl::StatusOr<std::unique_ptr<CosmoSynthesizer>> CosmoSynthesizer::Create(
    const CosmoParameters& parameters) {
  constexpr int kEdgeStep = 32;
  constexpr int kMaxEdge = 128;
  if (parameters.edge < kEdgeStep || parameters.edge > kMaxEdge || parameters.edge % kEdgeStep != 0)
    return absl::InvalidArgumentError(absl::StrCat(
        "cube edge is ", parameters.edge,
        "; the model's five poolings need a multiple of 32, and at most 128 is supported"));
  if (!(parameters.cell_mpc >= 1 && parameters.cell_mpc <= 32))
    return absl::InvalidArgumentError(
        absl::StrCat("cell is ", parameters.cell_mpc, " Mpc; it must be in 1..32"));
  return std::unique_ptr<CosmoSynthesizer>(
      new CosmoSynthesizer(parameters, std::make_unique<Grid>(parameters.edge)));
}

CosmoSample CosmoSynthesizer::Generate(Split split, uint32_t index) {
  const uint32_t key = SampleKey(split, index);
  CosmoSample sample{.counts = std::vector<int16_t>(grid_->voxels() * kCosmoChannels),
                     .targets = CosmoTargets(parameters_, split, index)};
  const Cosmology cosmology =
      CosmologyFor(parameters_.ranges, DrawTargets(parameters_.seed, key, kTargetPart));
  switch (parameters_.mode) {
    case CosmoMode::kLognormal:
    case CosmoMode::kShuffled:
      Lognormal(cosmology, key, &sample.counts);
      break;
    case CosmoMode::kZeldovich:
      Zeldovich(cosmology, key, &sample.counts);
      break;
    case CosmoMode::kBeacon:
      Beacon(parameters_.seed, key, sample.targets, &sample.counts);
      break;
  }
  return sample;
}

void CosmoSynthesizer::Lognormal(const Cosmology& cosmology, uint32_t key,
                                 std::vector<int16_t>* counts) {
  const double box = cosmology.h * parameters_.cell_mpc * parameters_.edge;  // Mpc/h
  grid_->SetWhiteNoise(Stream(parameters_.seed, Purpose::kDataset, key, kPhasePart),
                       parameters_.fixed_amplitudes);
  const double variance = grid_->Scale(ModeAmplitudes(cosmology, parameters_.edge, box));
  grid_->Backward();
  const double* delta = grid_->real();
  for (uint32_t c = 0; c < kCosmoChannels; ++c) {
    const double growth = Growth(cosmology.omega_m, kRedshifts[c]);
    const double shift = growth * growth * variance / 2;  // makes the mean density 1
    FillCounts(
        Stream(parameters_.seed, Purpose::kDataset, key, kCountPart + c), c,
        [=](size_t voxel) {
          return kMeanCount * std::exp(std::min(growth * delta[voxel] - shift, kMaxLogDensity));
        },
        counts);
  }
}

void CosmoSynthesizer::Zeldovich(const Cosmology& cosmology, uint32_t key,
                                 std::vector<int16_t>* counts) {
  const int edge = parameters_.edge;
  const double box = cosmology.h * parameters_.cell_mpc * edge;  // Mpc/h
  grid_->SetWhiteNoise(Stream(parameters_.seed, Purpose::kDataset, key, kPhasePart),
                       parameters_.fixed_amplitudes);
  grid_->Scale(ModeAmplitudes(cosmology, edge, box));
  const std::vector<Complex> density(grid_->modes(), grid_->modes() + grid_->mode_count());

  // Displacement in voxels along each axis: psi = i k delta / k^2, k = 2 pi n / box.
  std::array<std::vector<double>, 3> displacement;
  const double voxels_per_wave = edge / (2 * std::numbers::pi);
  for (size_t axis = 0; axis < displacement.size(); ++axis) {
    grid_->ForEachMode([&](size_t i, const std::array<int, 3>& n) {
      // The sign of a Nyquist frequency is undefined, so its derivative is dropped.
      const bool is_nyquist = std::abs(n[axis]) == edge / 2;
      const int square = Grid::SquaredLength(n);
      grid_->modes()[i] = is_nyquist || square == 0
                              ? Complex(0)
                              : density[i] * Complex(0, voxels_per_wave * n[axis] / square);
    });
    grid_->Backward();
    displacement[axis].assign(grid_->real(), grid_->real() + grid_->voxels());
  }

  const size_t size = static_cast<size_t>(edge);
  for (size_t c = 0; c < kCosmoChannels; ++c) {
    const double growth = Growth(cosmology.omega_m, kRedshifts[c]);
    for (size_t i = 0; i < grid_->voxels(); ++i) {
      const auto cell = [&](size_t axis, size_t start) {
        return Wrap(static_cast<double>(start) + 0.5 + growth * displacement[axis][i], edge);
      };
      const size_t x = cell(0, i / (size * size));
      const size_t y = cell(1, i / size % size);
      const size_t z = cell(2, i % size);
      int16_t& count = (*counts)[((x * size + y) * size + z) * kCosmoChannels + c];
      if (count < kMaxCount) ++count;
    }
  }
}

}  // namespace assay::dataset
