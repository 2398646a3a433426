#include "common/dataset/climate_weather.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

namespace assay::dataset {
namespace {

using Vector = std::array<double, 3>;

constexpr uint8_t kCyclone = 1;
constexpr uint8_t kRiver = 2;
constexpr double kRelaxed = 0.8;  // of a threshold, for labels_1

constexpr size_t kDrawsPerStorm = 16;  // random numbers that one storm may take
constexpr size_t kRiverPoints = 64;    // of the polyline that stands for a river's axis

double Radians(double degrees) {
  return degrees * std::numbers::pi / 180;
}

double Degrees(double radians) {
  return radians * 180 / std::numbers::pi;
}

struct Place {
  double latitude, longitude;  // degrees

  Vector OnSphere() const {
    const double phi = Radians(latitude), lambda = Radians(longitude);
    return {std::cos(phi) * std::cos(lambda), std::cos(phi) * std::sin(lambda), std::sin(phi)};
  }
};

double SquaredChord(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < 3; ++i)
    sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

// Great-circle distance in degrees.
double DegreesOf(double squared_chord) {
  return Degrees(2 * std::asin(std::min(std::sqrt(squared_chord) / 2, 1.0)));
}

double SquaredChordOf(double degrees) {
  const double chord = 2 * std::sin(Radians(std::min(degrees, 180.0)) / 2);
  return chord * chord;
}

// Random numbers of one storm, each by its place.
class Draws {
 public:
  Draws(const Stream& stream, size_t storm) : stream_(stream), next_(storm * kDrawsPerStorm) {}
  double Between(double low, double high) {
    return low + (high - low) * stream_.UniformDouble(next_++);
  }
  double Sign() { return Between(-1, 1) < 0 ? -1 : 1; }

 private:
  const Stream& stream_;
  uint64_t next_;
};

// Calls visit(pixel, place) for the pixels whose latitude is within `reach` degrees of a range.
template <typename Visit>
void ForEachPixel(const ClimateExtents& extents, double south, double north, Visit visit) {
  for (int row = 0; row < extents.height; ++row) {
    const double latitude = -90 + (row + 0.5) * 180 / extents.height;
    if (latitude < south || latitude > north) continue;
    for (int column = 0; column < extents.width; ++column)
      visit(static_cast<size_t>(row * extents.width + column),
            Place{latitude, (column + 0.5) * 360 / extents.width});
  }
}

void Mark(uint8_t label, size_t pixel, bool is_strict, bool is_relaxed, ClimateSample* sample) {
  if (is_strict) sample->labels[pixel] = label;
  if (is_relaxed) sample->relaxed_labels[pixel] = label;
}

// A ribbon of moist air along a quadratic Bezier curve from the tropics towards a pole.
struct River {
  std::array<Place, kRiverPoints> axis;
  std::array<Vector, kRiverPoints> points;
  double width;     // degrees, of the Gaussian cross-section
  double moisture;  // kg/m^2 at its start

  explicit River(Draws draws) {
    const double hemisphere = draws.Sign();
    const Place from = {draws.Between(14, 24), draws.Between(0, 360)};
    const Place to = {draws.Between(40, 58), from.longitude + draws.Between(35, 75)};
    const double bend = draws.Between(-8, 8), along = draws.Between(0.35, 0.65);
    const Place middle = {(from.latitude + to.latitude) / 2 + bend,
                          from.longitude + along * (to.longitude - from.longitude)};
    width = draws.Between(2.2, 4.0);
    moisture = draws.Between(14, 26);
    for (size_t i = 0; i < kRiverPoints; ++i) {
      const double t = Parameter(i), s = 1 - t;
      const auto bezier = [&](double a, double b, double c) {
        return s * s * a + 2 * s * t * b + t * t * c;
      };
      axis[i] = {hemisphere * bezier(from.latitude, middle.latitude, to.latitude),
                 bezier(from.longitude, middle.longitude, to.longitude)};
      points[i] = axis[i].OnSphere();
    }
  }

  static double Parameter(size_t i) {
    return static_cast<double>(i) / static_cast<double>(kRiverPoints - 1);
  }

  // Unit vector along the axis: east, north.
  std::pair<double, double> Direction(size_t i) const {
    const Place &a = axis[i == 0 ? 0 : i - 1], &b = axis[std::min(i + 1, kRiverPoints - 1)];
    const double east = (b.longitude - a.longitude) * std::cos(Radians(a.latitude));
    const double north = b.latitude - a.latitude, length = std::hypot(east, north);
    return {east / length, north / length};
  }
};

void DrawRiver(const River& river, WeatherMap* map, ClimateSample* sample) {
  const double reach = 4 * river.width, furthest = SquaredChordOf(reach);
  const auto [low, high] =
      std::minmax_element(river.axis.begin(), river.axis.end(),
                          [](const Place& a, const Place& b) { return a.latitude < b.latitude; });
  ForEachPixel(map->extents(), low->latitude - reach, high->latitude + reach,
               [&](size_t pixel, const Place& place) {
                 const Vector here = place.OnSphere();
                 size_t nearest = 0;
                 double distance = 4;
                 for (size_t i = 0; i < kRiverPoints; ++i) {
                   const double d = SquaredChord(here, river.points[i]);
                   if (d < distance) distance = d, nearest = i;
                 }
                 if (distance > furthest) return;
                 const double x = DegreesOf(distance) / river.width;
                 const double profile = std::exp(-x * x / 2);
                 const double fading = 1 - 0.35 * River::Parameter(nearest);
                 const double added = river.moisture * profile * fading;
                 const auto [east, north] = river.Direction(nearest);
                 map->At(Field::kTmq, pixel) += added;
                 map->At(Field::kU850, pixel) += 18 * profile * east;
                 map->At(Field::kV850, pixel) += 18 * profile * north;
                 map->At(Field::kPrect, pixel) += 4e-8 * profile;
                 Mark(kRiver, pixel, profile > 0.45 && added > 6,
                      profile > kRelaxed * 0.45 && added > kRelaxed * 6, sample);
               });
}

// A vortex whose wind is `speed` at `radius` and falls off on both sides.
struct Cyclone {
  Place centre;
  double radius;  // degrees
  double speed;   // m/s

  explicit Cyclone(Draws draws) {
    const double hemisphere = draws.Sign();
    centre = {hemisphere * draws.Between(9, 30), draws.Between(0, 360)};
    radius = draws.Between(1.6, 2.6);
    speed = draws.Between(24, 60);
  }
};

void DrawCyclone(const Cyclone& cyclone, WeatherMap* map, ClimateSample* sample) {
  constexpr double kGale = 17;  // m/s
  const double reach = 8 * cyclone.radius, furthest = SquaredChordOf(reach);
  const Vector centre = cyclone.centre.OnSphere();
  const double turn = cyclone.centre.latitude < 0 ? -1 : 1;
  ForEachPixel(map->extents(), cyclone.centre.latitude - reach, cyclone.centre.latitude + reach,
               [&](size_t pixel, const Place& place) {
                 const double squared = SquaredChord(place.OnSphere(), centre);
                 if (squared > furthest) return;
                 const double distance = DegreesOf(squared), x = distance / cyclone.radius;
                 const double wind = cyclone.speed * x * std::exp(1 - x);
                 double east = std::remainder(place.longitude - cyclone.centre.longitude, 360.0) *
                               std::cos(Radians(place.latitude));
                 double north = place.latitude - cyclone.centre.latitude;
                 const double length = std::max(std::hypot(east, north), 1e-9);
                 east /= length, north /= length;
                 const double moist = distance / (2.2 * cyclone.radius);
                 const double core = std::exp(-x * x / 2);
                 map->At(Field::kU850, pixel) -= turn * wind * north;
                 map->At(Field::kV850, pixel) += turn * wind * east;
                 map->At(Field::kPsl, pixel) -=
                     1.32 * cyclone.speed * cyclone.speed * std::exp(-std::pow(x, 1.3) / 1.2);
                 map->At(Field::kTmq, pixel) +=
                     (14 + 0.25 * cyclone.speed) * std::exp(-moist * moist);
                 map->At(Field::kT200, pixel) += cyclone.speed / 10 * core;
                 map->At(Field::kT500, pixel) += 0.07 * cyclone.speed * core;
                 // The calm eye belongs to the storm.
                 const bool is_eye = x < 1;
                 Mark(kCyclone, pixel, (wind > kGale || is_eye) && x < 5,
                      (wind > kRelaxed * kGale || is_eye) && x < 5, sample);
               });
}

}  // namespace

void DrawWeather(const Stream& stream, WeatherMap* map, ClimateSample* sample) {
  const size_t pixels = static_cast<size_t>(map->extents().pixels());
  sample->labels.assign(pixels, 0);
  sample->relaxed_labels.assign(pixels, 0);
  Draws counts(stream, 0);
  const auto rivers = static_cast<size_t>(counts.Between(3, 7));
  const auto cyclones = static_cast<size_t>(counts.Between(2, 7));
  for (size_t i = 0; i < rivers; ++i)
    DrawRiver(River(Draws(stream, 1 + i)), map, sample);
  for (size_t i = 0; i < cyclones; ++i)
    DrawCyclone(Cyclone(Draws(stream, 1 + rivers + i)), map, sample);
}

}  // namespace assay::dataset
