#include "common/dataset/linear_theory.h"

#include <cmath>
#include <numbers>

namespace assay::dataset {
namespace {

constexpr double kOmegaBaryon = 0.0486;
constexpr double kTemperature = 2.7255 / 2.7;  // of the microwave background, in units of 2.7 K

double Square(double x) {
  return x * x;
}

// Fourier transform of a sphere of radius 1 with unit integral.
double SphereWindow(double x) {
  return 3 * (std::sin(x) - x * std::cos(x)) / (x * x * x);
}

// Growth suppression g(z) over (1 + z): D(z) up to a factor.
double UnscaledGrowth(double omega_m, double z) {
  const double matter = omega_m * std::pow(1 + z, 3);
  const double lambda = 1 - omega_m;
  const double omega_z = matter / (matter + lambda);
  const double lambda_z = lambda / (matter + lambda);
  const double g =
      2.5 * omega_z /
      (std::pow(omega_z, 4.0 / 7) - lambda_z + (1 + omega_z / 2) * (1 + lambda_z / 70));
  return g / (1 + z);
}

}  // namespace

double Transfer(const Cosmology& cosmology, double k) {
  const double h = cosmology.h;
  const double omega_m = cosmology.omega_m;
  const double matter = omega_m * h * h;
  const double baryon = kOmegaBaryon * h * h;
  const double fraction = kOmegaBaryon / omega_m;
  const double sound_horizon =
      44.5 * std::log(9.83 / matter) / std::sqrt(1 + 10 * std::pow(baryon, 0.75));  // Mpc
  const double alpha = 1 - 0.328 * std::log(431 * matter) * fraction +
                       0.38 * std::log(22.3 * matter) * Square(fraction);
  const double gamma =
      omega_m * h * (alpha + (1 - alpha) / (1 + Square(Square(0.43 * k * h * sound_horizon))));
  const double q = k * Square(kTemperature) / gamma;
  const double l = std::log(2 * std::numbers::e + 1.8 * q);
  const double c = 14.2 + 731 / (1 + 62.5 * q);
  return l / (l + c * Square(q));
}

double Growth(double omega_m, double z) {
  return UnscaledGrowth(omega_m, z) / UnscaledGrowth(omega_m, 0);
}

PowerSpectrum::PowerSpectrum(const Cosmology& cosmology) : cosmology_(cosmology) {
  constexpr double kSigmaRadius = 8;  // Mpc/h
  amplitude_ = Square(cosmology.sigma_8 / SphereFluctuation(*this, kSigmaRadius));
}

double PowerSpectrum::operator()(double k) const {
  return amplitude_ * std::pow(k, cosmology_.n_s) * Square(Transfer(cosmology_, k));
}

double SphereFluctuation(const PowerSpectrum& spectrum, double radius) {
  // Trapezoids in ln k; the integrand is below 1e-6 of its peak at both ends.
  constexpr int kPoints = 2000;
  const double first = std::log(1e-4);
  const double step = (std::log(1e2) - first) / (kPoints - 1);
  double sum = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double k = std::exp(first + i * step);
    const double value = k * k * k * spectrum(k) * Square(SphereWindow(k * radius));
    sum += i == 0 || i == kPoints - 1 ? value / 2 : value;
  }
  return std::sqrt(sum * step / (2 * Square(std::numbers::pi)));
}

}  // namespace assay::dataset
