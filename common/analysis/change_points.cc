#include "common/analysis/change_points.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "common/random.h"

namespace assay::analysis {
namespace {

// Rounding must not make a permutation of equal sums smaller than what was observed.
constexpr double kRounding = 1e-9;

// Values [first, last) have another level than those around them.
struct Arc {
  size_t first = 0;  // 0: no arc is allowed
  size_t last = 0;
  double strength = 0;  // sum of squares between inside and outside
};

class Segmentation {
 public:
  Segmentation(std::span<const double> values, const ChangeOptions& options)
      : options_(options), step_min_(std::log(options.ratio_min)) {
    logs_.reserve(values.size());
    for (const double value : values)
      logs_.push_back(std::log(value));
  }

  std::vector<ChangePoint> Find() {
    Split(0, logs_.size());
    std::sort(changes_.begin(), changes_.end(),
              [](const ChangePoint& a, const ChangePoint& b) { return a.first < b.first; });
    DropSmall();
    return std::move(changes_);
  }

 private:
  // The strongest arc of `logs` whose parts are long enough and differ enough; one that lasts to
  // the end is a single cut. A function of the order alone, so that the test of it by permutations
  // is exact.
  Arc StrongestArc(std::span<const double> logs) {
    const auto side = static_cast<size_t>(options_.side_count_min);
    const size_t count = logs.size();
    sums_.assign(count + 1, 0);
    for (size_t i = 0; i < count; ++i)
      sums_[i + 1] = sums_[i] + logs[i];
    Arc best;
    for (size_t first = side; first + side <= count; ++first) {
      Try({.first = first, .last = count}, count, &best);
      for (size_t last = first + side; last + side <= count; ++last)
        Try({.first = first, .last = last}, count, &best);
    }
    return best;
  }

  void Try(Arc arc, size_t count, Arc* best) const {
    const auto inside = static_cast<double>(arc.last - arc.first);
    const double outside = static_cast<double>(count) - inside;
    const double sum = sums_[arc.last] - sums_[arc.first];
    const double step = sum / inside - (sums_[count] - sum) / outside;
    arc.strength = step * step * inside * outside / static_cast<double>(count);
    if (arc.strength > best->strength && std::fabs(step) >= step_min_) *best = arc;
  }

  // Of the orders of [begin, end), the share whose strongest arc is at least as strong, that of the
  // series itself included; above p_max as soon as that is certain.
  double PValue(size_t begin, size_t end, double strength) {
    const Stream stream(options_.seed, Purpose::kPermutation, static_cast<uint32_t>(begin),
                        static_cast<uint32_t>(end));
    std::vector<double> order(logs_.begin() + static_cast<ptrdiff_t>(begin),
                              logs_.begin() + static_cast<ptrdiff_t>(end));
    const double all = options_.permutations + 1;
    uint64_t index = 0;
    int as_strong = 1;
    for (int i = 0; i < options_.permutations && as_strong / all < options_.p_max; ++i) {
      for (size_t k = order.size() - 1; k > 0; --k)
        std::swap(order[k], order[stream.Below(index++, static_cast<uint32_t>(k + 1))]);
      if (StrongestArc(order).strength >= strength * (1 - kRounding)) ++as_strong;
    }
    return as_strong / all;
  }

  void Split(size_t begin, size_t end) {
    if (end - begin < 2 * static_cast<size_t>(options_.side_count_min)) return;
    const Arc arc = StrongestArc(std::span(logs_).subspan(begin, end - begin));
    if (arc.first == 0) return;
    const double p_value = PValue(begin, end, arc.strength);
    if (p_value >= options_.p_max) return;
    size_t done = begin;
    for (const size_t border : {begin + arc.first, begin + arc.last}) {
      if (border < end) changes_.push_back({.first = static_cast<int>(border), .p_value = p_value});
      Split(done, border);
      done = border;
    }
    Split(done, end);
  }

  double Level(size_t begin, size_t end) const {
    return std::accumulate(logs_.begin() + static_cast<ptrdiff_t>(begin),
                           logs_.begin() + static_cast<ptrdiff_t>(end), 0.0) /
           static_cast<double>(end - begin);
  }

  // Borders found early may lie between levels that later ones have made alike.
  void DropSmall() {
    while (!changes_.empty()) {
      size_t smallest = 0;
      double smallest_step = std::numeric_limits<double>::infinity();
      for (size_t i = 0; i < changes_.size(); ++i) {
        const size_t begin = i == 0 ? 0 : static_cast<size_t>(changes_[i - 1].first);
        const auto middle = static_cast<size_t>(changes_[i].first);
        const size_t end =
            i + 1 == changes_.size() ? logs_.size() : static_cast<size_t>(changes_[i + 1].first);
        const double step = Level(middle, end) - Level(begin, middle);
        changes_[i].ratio = std::exp(step);
        if (std::fabs(step) < smallest_step) {
          smallest_step = std::fabs(step);
          smallest = i;
        }
      }
      if (smallest_step >= step_min_) return;
      changes_.erase(changes_.begin() + static_cast<ptrdiff_t>(smallest));
    }
  }

  const ChangeOptions options_;
  const double step_min_;  // of logarithms
  std::vector<double> logs_;
  std::vector<double> sums_;  // of the order that is looked at, before each place
  std::vector<ChangePoint> changes_;
};

}  // namespace

std::vector<ChangePoint> FindChanges(std::span<const double> values, const ChangeOptions& options) {
  return Segmentation(values, options).Find();
}

}  // namespace assay::analysis
