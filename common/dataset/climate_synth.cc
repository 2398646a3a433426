#include "common/dataset/climate_synth.h"

#include <fftw3.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/dataset/climate_weather.h"
#include "common/dataset/fourier.h"
#include "common/mutex.h"
#include "common/random.h"

namespace assay::dataset {
namespace {

using Complex = std::complex<double>;

constexpr size_t kNoises = 8;
constexpr double kSpectrumBend = 6;      // waves around the globe where the spectrum bends
constexpr double kSpectrumSlope = -1.6;  // of the power, in (1 + (k / bend)^2)
constexpr int kSignificantBits = 14;

// Parts of a snapshot that draw from streams of their own. Never renumber: datasets are reproduced
// by seed.
enum Part : uint32_t { kTopographyPart = 64, kSeasonPart = 65, kWeatherPart = 66, kNoisePart = 72 };

uint32_t SampleKey(Split split, uint32_t index) {
  constexpr uint32_t kValidationBit = uint32_t{1} << 31;
  return split == Split::kValidation ? index | kValidationBit : index;
}

double Radians(double degrees) {
  return degrees * std::numbers::pi / 180;
}

float Rounded(double value) {
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  const double steps = std::ldexp(1.0, kSignificantBits);
  return static_cast<float>(std::ldexp(std::round(fraction * steps) / steps, exponent));
}

}  // namespace

// Smooth Gaussian fields of unit variance. The grid is twice as high as the map, so that the poles
// do not wrap around to each other.
class ClimateSynthesizer::Noise {
 public:
  explicit Noise(const ClimateExtents& extents)
      : extents_(extents),
        rows_(2 * extents.height),
        half_(extents.width / 2 + 1),
        real_(MakeFftwArray<double>(Points())),
        modes_(MakeFftwArray<Complex>(Modes())),
        filter_(Modes()) {
    MutexLock lock(&FftwPlannerMutex());
    // FFTW_ESTIMATE: no timing decides, so the same plan every time.
    auto* modes = reinterpret_cast<fftw_complex*>(modes_.get());
    forward_ = fftw_plan_dft_r2c_2d(rows_, extents.width, real_.get(), modes, FFTW_ESTIMATE);
    backward_ = fftw_plan_dft_c2r_2d(rows_, extents.width, modes, real_.get(), FFTW_ESTIMATE);
    MakeFilter();
  }
  ~Noise() {
    MutexLock lock(&FftwPlannerMutex());
    fftw_destroy_plan(forward_);
    fftw_destroy_plan(backward_);
  }
  Noise(const Noise&) = delete;
  Noise& operator=(const Noise&) = delete;

  // One number per pixel of the map.
  std::vector<double> Draw(const Stream& stream) {
    for (size_t i = 0; i < Points(); ++i)
      real_[i] = double{stream.Normal(i)};
    fftw_execute(forward_);
    for (size_t i = 0; i < Modes(); ++i)
      modes_[i] *= filter_[i];
    fftw_execute(backward_);
    return {real_.get(), real_.get() + extents_.pixels()};
  }

 private:
  size_t Points() const { return static_cast<size_t>(rows_) * static_cast<size_t>(extents_.width); }
  size_t Modes() const { return static_cast<size_t>(rows_) * static_cast<size_t>(half_); }

  // Amplitude of each mode: both axes go around the globe once.
  void MakeFilter() {
    double power = 0;
    for (int y = 0; y < rows_; ++y) {
      const int wave = y <= rows_ / 2 ? y : y - rows_;
      for (int x = 0; x < half_; ++x) {
        const double k2 = (wave * wave + x * x) / (kSpectrumBend * kSpectrumBend);
        const double mode_power = wave == 0 && x == 0 ? 0 : std::pow(1 + k2, kSpectrumSlope);
        const bool has_mirror = x != 0 && x != extents_.width / 2;
        power += has_mirror ? 2 * mode_power : mode_power;
        filter_[static_cast<size_t>(y * half_ + x)] = std::sqrt(mode_power);
      }
    }
    // White noise has power 1 in each of `points` modes, and the transforms multiply by points.
    const double scale = 1 / std::sqrt(power * static_cast<double>(Points()));
    for (double& amplitude : filter_)
      amplitude *= scale;
  }

  const ClimateExtents extents_;
  const int rows_;
  const int half_;
  const FftwArray<double> real_;
  const FftwArray<Complex> modes_;
  std::vector<double> filter_;
  fftw_plan forward_ = nullptr;
  fftw_plan backward_ = nullptr;
};

namespace {

using Noises = std::array<std::vector<double>, kNoises>;

// What the calm background of one snapshot is made from.
struct Background {
  ClimateExtents extents;
  double season;  // -1 to 1
  Noises noise;
  std::vector<double> topography;  // metres

  double Latitude(int row) const { return -90 + (row + 0.5) * 180 / extents.height; }
};

double SurfacePressure(const Background& b, int row, size_t pixel) {
  const double latitude = b.Latitude(row), s = std::abs(std::sin(Radians(latitude)));
  return 101300 + 900 * std::cos(3 * Radians(latitude)) - (std::abs(latitude) > 50 ? 600 : 0) +
         (300 + 700 * s) * b.noise[2][pixel];
}

// The fields at one pixel, but for winds, which need the pressure's slope.
void FillPixel(const Background& b, int row, size_t pixel, WeatherMap* map) {
  const double latitude = b.Latitude(row), phi = Radians(latitude);
  const double s = std::sin(phi), c = std::cos(phi), u = b.season;
  const auto g = [&](size_t i) { return b.noise[i][pixel]; };
  const auto at = [&](Field field) -> double& { return map->At(field, pixel); };
  at(Field::kTs) = 302 - 45 * std::pow(std::abs(std::sin(Radians(latitude - 8 * u))), 2.2) +
                   4 * g(0) * std::abs(s) + g(1);
  at(Field::kPsl) = SurfacePressure(b, row, pixel);
  const double belt = (latitude - 6 * u) / 24;
  at(Field::kTmq) = std::max(0.3, 52 * std::exp(-belt * belt) + 4 + 9 * c * c * g(5));
  at(Field::kPrect) = 2e-8 * std::max(g(6) - 1.2, 0.0) * (0.2 + c * c);
  at(Field::kT500) = 268 - 28 * s * s + 1.5 * g(0);
  at(Field::kT200) = 218 - 6 * std::cos(2 * phi) + 1.2 * g(7);
}

// Geostrophic winds from the pressure's slope, westerlies or trades, and some noise.
void FillWinds(const Background& b, int row, int column, WeatherMap* map) {
  constexpr double kMetresPerDegree = 111e3, kDensity = 1.2, kCoriolis = 1.458e-4;
  const int height = b.extents.height, width = b.extents.width;
  const auto pixel = [&](int r, int c) { return static_cast<size_t>(r * width + c); };
  const auto psl = [&](int r, int c) { return map->At(Field::kPsl, pixel(r, c)); };
  const double latitude = b.Latitude(row), sine = std::sin(Radians(latitude));
  const int south = std::max(row - 1, 0), north = std::min(row + 1, height - 1);
  const double dy = (north - south) * 180.0 / height * kMetresPerDegree;
  const double cosine = std::max(std::cos(Radians(latitude)), 0.1);
  const double dx = 2 * 360.0 / width * kMetresPerDegree * cosine;
  const double floor = std::abs(sine) < 0.25 ? (sine < 0 ? -0.25 : 0.25) : sine;
  const double factor = 1 / (kDensity * kCoriolis * floor);
  const double slope_y = (psl(north, column) - psl(south, column)) / dy;
  const double slope_x =
      (psl(row, (column + 1) % width) - psl(row, (column + width - 1) % width)) / dx;
  const double belt =
      std::abs(latitude) > 15 ? 8 * std::sin(Radians(2 * std::abs(latitude) - 30)) : -5;
  const size_t at = pixel(row, column);
  map->At(Field::kU850, at) =
      std::clamp(-factor * slope_y + belt, -40.0, 40.0) + 2 * b.noise[3][at];
  map->At(Field::kV850, at) = std::clamp(factor * slope_x, -40.0, 40.0) + 2 * b.noise[4][at];
}

// The fields that follow from others, once the weather has been drawn into those.
void FillDerived(const Background& b, size_t pixel, WeatherMap* map) {
  const auto at = [&](Field field) -> double& { return map->At(field, pixel); };
  const int row = static_cast<int>(pixel) / b.extents.width;
  const double s = std::sin(Radians(b.Latitude(row)));
  const double humidity = std::clamp(0.75 + 0.08 * b.noise[5][pixel], 0.3, 1.0);
  at(Field::kPs) = at(Field::kPsl) * std::exp(-b.topography[pixel] / 8000);
  at(Field::kZ1000) = (at(Field::kPsl) - 1e5) / 11.8;
  at(Field::kZ200) = 11800 - 1300 * s * s + 3 * (at(Field::kT500) - 260) + 8 * b.noise[2][pixel];
  at(Field::kUbot) = 0.72 * at(Field::kU850) + 0.6 * b.noise[7][pixel];
  at(Field::kVbot) = 0.72 * at(Field::kV850) + 0.6 * b.noise[1][pixel];
  at(Field::kTrefht) = at(Field::kTs) - 1.5;
  at(Field::kQrefht) = 0.0185 * std::exp(0.065 * (at(Field::kTrefht) - 300)) * humidity;
  at(Field::kZbot) = 61.1 * at(Field::kTrefht) / 288;
}

void FillBackground(const Background& b, WeatherMap* map) {
  const int width = b.extents.width;
  for (int row = 0; row < b.extents.height; ++row)
    for (int column = 0; column < width; ++column)
      FillPixel(b, row, static_cast<size_t>(row * width + column), map);
  for (int row = 0; row < b.extents.height; ++row)
    for (int column = 0; column < width; ++column)
      FillWinds(b, row, column, map);
}

}  // namespace

ClimateSynthesizer::ClimateSynthesizer(const ClimateParameters& parameters,
                                       std::unique_ptr<Noise> noise)
    : parameters_(parameters), noise_(std::move(noise)) {}

ClimateSynthesizer::~ClimateSynthesizer() = default;

absl::StatusOr<std::unique_ptr<ClimateSynthesizer>> ClimateSynthesizer::Create(
    const ClimateParameters& parameters) {
  const auto [height, width] = parameters.extents;
  if (height < 32 || height > 768 || height % 16 != 0 || width < 32 || width > 1152 ||
      width % 16 != 0)
    return absl::InvalidArgumentError(
        absl::StrCat("a map of ", height, " x ", width,
                     " is not possible; height and width are multiples of 16 from 32 up to 768 and "
                     "1152"));
  return std::unique_ptr<ClimateSynthesizer>(
      new ClimateSynthesizer(parameters, std::make_unique<Noise>(parameters.extents)));
}

ClimateSample ClimateSynthesizer::Generate(Split split, uint32_t index) {
  const uint64_t seed = parameters_.seed;
  const uint32_t key = SampleKey(split, index);
  const auto stream = [&](uint32_t part) { return Stream(seed, Purpose::kDataset, key, part); };
  Background background = {.extents = parameters_.extents,
                           .season = 2 * stream(kSeasonPart).UniformDouble(0) - 1};
  for (uint32_t i = 0; i < kNoises; ++i)
    background.noise[i] = noise_->Draw(stream(kNoisePart + i));
  // Mountains are the same in every snapshot.
  background.topography = noise_->Draw(Stream(seed, Purpose::kDataset, 0, kTopographyPart));
  for (double& height : background.topography)
    height = 1500 * std::max(height - 0.8, 0.0);

  WeatherMap map(parameters_.extents);
  FillBackground(background, &map);
  ClimateSample sample = {.extents = parameters_.extents};
  DrawWeather(stream(kWeatherPart), &map, &sample);
  const size_t pixels = static_cast<size_t>(parameters_.extents.pixels());
  for (size_t pixel = 0; pixel < pixels; ++pixel)
    FillDerived(background, pixel, &map);
  sample.data.resize(pixels * kClimateChannels);
  std::transform(map.values().begin(), map.values().end(), sample.data.begin(), Rounded);
  return sample;
}

}  // namespace assay::dataset
