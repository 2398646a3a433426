#include "common/analysis/node_spread.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace assay::analysis {
namespace {

double Median(std::vector<double> values) {
  const auto half = static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), values.begin() + half, values.end());
  const double upper = values[static_cast<size_t>(half)];
  if (values.size() % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), values.begin() + half)) / 2;
}

std::vector<double> EpochSeconds(const std::vector<const PlacedRun*>& runs) {
  std::vector<double> values;
  for (const PlacedRun* run : runs)
    values.push_back(run->run_s / run->epochs);
  return values;
}

SpreadRow RowOf(std::string name, const std::vector<double>& ratios) {
  return {.name = std::move(name),
          .ratio = *MomentsOf(ratios),
          .ratio_min = *std::min_element(ratios.begin(), ratios.end()),
          .ratio_max = *std::max_element(ratios.begin(), ratios.end())};
}

std::vector<SpreadRow> RowsByNode(const std::vector<const PlacedRun*>& runs, double median) {
  std::map<std::string, std::vector<double>> ratios;
  for (const PlacedRun* run : runs)
    for (const std::string& node : std::set(run->nodes.begin(), run->nodes.end()))
      ratios[node].push_back(run->run_s / run->epochs / median);
  std::vector<SpreadRow> rows;
  for (const auto& [node, values] : ratios)
    rows.push_back(RowOf(node, values));
  std::stable_sort(rows.begin(), rows.end(), [](const SpreadRow& a, const SpreadRow& b) {
    return a.ratio.mean > b.ratio.mean;
  });
  return rows;
}

std::vector<SpreadRow> RowsByPosition(std::map<std::string, std::vector<const PlacedRun*>> sets) {
  std::vector<std::vector<double>> ratios;
  for (auto& [name, runs] : sets) {
    if (runs.size() < 2) continue;
    const double median = Median(EpochSeconds(runs));
    std::stable_sort(runs.begin(), runs.end(), [](const PlacedRun* a, const PlacedRun* b) {
      return a->start_ms < b->start_ms;
    });
    if (ratios.size() < runs.size()) ratios.resize(runs.size());
    for (size_t i = 0; i < runs.size(); ++i)
      ratios[i].push_back(runs[i]->run_s / runs[i]->epochs / median);
  }
  std::vector<SpreadRow> rows;
  for (size_t i = 0; i < ratios.size(); ++i)
    rows.push_back(RowOf(absl::StrCat(i + 1), ratios[i]));
  return rows;
}

}  // namespace

SpreadReport SpreadOf(std::span<const PlacedRun> runs) {
  std::vector<const PlacedRun*> timed;
  std::map<std::string, std::vector<const PlacedRun*>> sets;
  for (const PlacedRun& run : runs) {
    const bool is_timed = std::isfinite(run.run_s) && run.run_s > 0 && run.epochs > 0;
    if (!is_timed) continue;
    timed.push_back(&run);
    sets[run.set].push_back(&run);
  }
  SpreadReport report{.set_count = static_cast<int>(sets.size()),
                      .run_count = static_cast<int>(timed.size())};
  if (timed.empty()) return report;
  const std::vector<double> epoch_s = EpochSeconds(timed);
  report.epoch_s_median = Median(epoch_s);
  report.epoch_s = *MomentsOf(epoch_s);
  report.by_node = RowsByNode(timed, report.epoch_s_median);
  report.by_position = RowsByPosition(std::move(sets));
  return report;
}

}  // namespace assay::analysis
