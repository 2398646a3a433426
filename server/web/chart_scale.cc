#include "server/web/chart_scale.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "server/web/chart.h"

namespace assay::web {
namespace {

std::vector<double> LinearTicks(double low, double high) {
  constexpr double kTicksAbout = 5;
  const double raw = (high - low) / kTicksAbout;
  const double magnitude = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * magnitude;
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * magnitude >= raw * 0.999) {
      step = factor * magnitude;
      break;
    }
  std::vector<double> ticks;
  const double last = std::ceil(high / step - 1e-9);
  for (double i = std::floor(low / step + 1e-9); i <= last; ++i)
    ticks.push_back(i * step);
  return ticks;
}

std::vector<double> LogTicks(double low, double high) {
  // Of more decades than these the powers of ten are enough.
  constexpr double kDecadesDense = 2.5;
  const bool is_dense = std::log10(high / low) < kDecadesDense;
  std::vector<double> candidates;
  for (double decade = std::floor(std::log10(low)); decade <= std::ceil(std::log10(high)); ++decade)
    for (const double factor : {1.0, 2.0, 5.0})
      if (factor == 1.0 || is_dense) candidates.push_back(factor * std::pow(10, decade));
  std::vector<double> ticks;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const bool covers_low = i + 1 < candidates.size() && candidates[i + 1] > low * (1 + 1e-9);
    const bool covers_high = i == 0 || candidates[i - 1] < high * (1 - 1e-9);
    if ((covers_low || candidates[i] >= low) && covers_high) ticks.push_back(candidates[i]);
  }
  return ticks;
}

}  // namespace

std::vector<double> TicksOf(double low, double high, bool is_log) {
  return is_log ? LogTicks(low, high) : LinearTicks(low, high);
}

std::string TickText(double value) {
  constexpr double kKilo = 1e3;
  struct Prefix {
    double factor;
    const char* name;
  };
  constexpr Prefix kPrefixes[] = {{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {kKilo, " k"}};
  const double size = std::abs(value);
  if (size < 1e-12) return "0";
  if (size >= 10 * kKilo)
    for (const Prefix& prefix : kPrefixes)
      if (size >= prefix.factor)
        return absl::StrFormat("%.4g%s", value / prefix.factor, prefix.name);
  if (size >= kKilo)
    return absl::StrFormat("%d,%03d", static_cast<int>(value / kKilo),
                           static_cast<int>(std::fmod(size, kKilo)));
  return absl::StrFormat("%.4g", value);
}

bool ChartScale::Takes(double value) const {
  return std::isfinite(value) && (!is_log_ || value > 0);
}

void ChartScale::Add(double value) {
  if (!Takes(value)) return;
  low_ = has_values_ ? std::min(low_, value) : value;
  high_ = has_values_ ? std::max(high_, value) : value;
  has_values_ = true;
}

void ChartScale::Settle() {
  if (!has_values_) low_ = high_ = 1;
  if (low_ == high_) {
    const double room = low_ == 0 ? 1 : std::abs(low_) * 0.1;
    low_ = is_log_ ? low_ / 2 : low_ - room;
    high_ = is_log_ ? high_ * 2 : high_ + room;
  }
  ticks_ = TicksOf(low_, high_, is_log_);
  low_ = ticks_.front();
  high_ = ticks_.back();
}

double ChartScale::At(double value) const {
  const double share =
      is_log_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
  return begin_ + share * (end_ - begin_);
}

}  // namespace assay::web
