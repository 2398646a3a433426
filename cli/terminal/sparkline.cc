#include "cli/terminal/sparkline.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace assay::cli {
namespace {

constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr const char* kAscii[] = {"_", ".", ",", "-", "=", "+", "*", "#"};
static_assert(std::size(kBlocks) == std::size(kAscii));

}  // namespace

std::string Sparkline(std::span<const std::optional<double>> values, bool is_utf8) {
  constexpr auto kLevels = static_cast<double>(std::size(kBlocks));
  double highest = 0;
  for (const std::optional<double>& value : values)
    if (value.has_value() && std::isfinite(*value)) highest = std::max(highest, *value);
  std::string text;
  for (const std::optional<double>& value : values) {
    if (!value.has_value() || !std::isfinite(*value)) {
      text += ' ';
      continue;
    }
    const double share = highest > 0 ? std::clamp(*value / highest, 0.0, 1.0) : 0;
    const auto level =
        static_cast<size_t>(std::clamp(std::ceil(share * kLevels) - 1, 0.0, kLevels - 1));
    absl::StrAppend(&text, is_utf8 ? kBlocks[level] : kAscii[level]);
  }
  return text;
}

std::string Bar(double share, int width, bool is_utf8) {
  const double filled = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) * width : 0;
  const int count = static_cast<int>(std::lround(filled));
  std::string text;
  for (int i = 0; i < width; ++i)
    absl::StrAppend(&text, i < count ? (is_utf8 ? "█" : "#") : (is_utf8 ? "░" : "."));
  return text;
}

}  // namespace assay::cli
