#include "common/telemetry/bytes.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace assay::telemetry {
namespace {

// Before the first sample and after the last nothing is known of longer times.
constexpr int64_t kBeyondNs = 2'000'000'000;

constexpr absl::string_view kRun[] = {"run."};
constexpr absl::string_view kDisks[] = {"disk."};
constexpr absl::string_view kServers[] = {"server."};
constexpr absl::string_view kNetwork[] = {"network.", "infiniband."};

// What a node that lies about its clock can write is kept within what can be computed with.
int64_t Sane(int64_t node_ns) {
  constexpr int64_t kMax = int64_t{1} << 60;
  return std::clamp(node_ns, -kMax, kMax);
}

bool HasPrefix(absl::string_view name, std::span<const absl::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [name](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
}

}  // namespace

int64_t NodeNsAt(const Header& header, int64_t wall_ms) {
  constexpr int64_t kWallMaxUs = 3'000'000'000'000'000;
  const int64_t wall_us = std::clamp(wall_ms, -kWallMaxUs / 1000, kWallMaxUs / 1000) * 1000;
  return Sane(header.node_ns) +
         (wall_us - std::clamp(header.wall_us, -kWallMaxUs, kWallMaxUs)) * 1000;
}

Growth::Growth(const Series& series, std::span<const absl::string_view> prefixes,
               absl::string_view suffix)
    : grown_(series.at_ns.size(), 0.0) {
  for (const int64_t at_ns : series.at_ns)
    at_ns_.push_back(Sane(at_ns));
  for (size_t c = 0; c < series.header.columns.size(); ++c) {
    const std::string& name = series.header.columns[c].name;
    if (!HasPrefix(name, prefixes) || !absl::EndsWith(name, suffix)) continue;
    has_columns_ = true;
    double grown = 0;
    std::optional<int64_t> last;
    for (size_t i = 0; i < grown_.size(); ++i) {
      const int64_t value = series.columns[c][i];
      if (value == kMissing) {
        grown_[i].reset();
        continue;
      }
      // One that has begun anew counts from there.
      if (last.has_value() && value > *last)
        grown += static_cast<double>(value) - static_cast<double>(*last);
      last = value;
      if (grown_[i].has_value()) *grown_[i] += grown;
    }
  }
}

std::optional<double> Growth::At(int64_t node_ns) const {
  if (!has_columns_ || at_ns_.empty()) return std::nullopt;
  node_ns = Sane(node_ns);
  if (node_ns < at_ns_.front() - kBeyondNs || node_ns > at_ns_.back() + kBeyondNs)
    return std::nullopt;
  const auto next =
      static_cast<size_t>(std::lower_bound(at_ns_.begin(), at_ns_.end(), node_ns) - at_ns_.begin());
  if (next == at_ns_.size()) return grown_.back();
  if (next == 0 || at_ns_[next] == node_ns) return grown_[next];
  if (!grown_[next].has_value() || !grown_[next - 1].has_value()) return std::nullopt;
  const double share = static_cast<double>(node_ns - at_ns_[next - 1]) /
                       static_cast<double>(at_ns_[next] - at_ns_[next - 1]);
  return *grown_[next - 1] + share * (*grown_[next] - *grown_[next - 1]);
}

std::optional<double> Growth::Between(int64_t begin_ns, int64_t end_ns) const {
  const std::optional<double> begin = At(begin_ns);
  const std::optional<double> end = At(end_ns);
  if (!begin.has_value() || !end.has_value()) return std::nullopt;
  return *end - *begin;
}

std::optional<double> BytesRead::FromStorage() const {
  if (run.has_value()) return run;
  if (!disks.has_value() && !servers.has_value()) return std::nullopt;
  return disks.value_or(0) + servers.value_or(0);
}

NodeBytes::NodeBytes(const Series* series)
    : series_(series),
      run_(*series, kRun, ".read"),
      disks_(*series, kDisks, ".read"),
      servers_(*series, kServers, ".read"),
      network_(*series, kNetwork, ".received") {}

BytesRead NodeBytes::Between(int64_t begin_ns, int64_t end_ns) const {
  return {.run = run_.Between(begin_ns, end_ns),
          .disks = disks_.Between(begin_ns, end_ns),
          .servers = servers_.Between(begin_ns, end_ns),
          .network = network_.Between(begin_ns, end_ns)};
}

std::optional<int64_t> NodeBytes::SampleAfter(int64_t node_ns) const {
  const std::vector<int64_t>& at_ns = series_->at_ns;
  const auto found = std::lower_bound(at_ns.begin(), at_ns.end(), node_ns);
  if (found == at_ns.end()) return std::nullopt;
  return Sane(*found);
}

int64_t NodeBytes::first_ns() const {
  return series_->at_ns.empty() ? Sane(series_->header.node_ns) : Sane(series_->at_ns.front());
}

std::vector<PhaseBytes> BytesByPhase(const NodeBytes& node, const RunPhases& phases) {
  std::vector<PhaseBytes> parts;
  if (!phases.run_start_ms.has_value() || !phases.run_stop_ms.has_value()) return parts;
  const auto add = [&](std::string name, int epoch, int64_t begin_ns, int64_t end_ns) {
    if (end_ns <= begin_ns) return;
    parts.push_back({.phase = std::move(name),
                     .epoch = epoch,
                     .seconds = static_cast<double>(end_ns - begin_ns) * 1e-9,
                     .read = node.Between(begin_ns, end_ns)});
  };
  const int64_t start_ns = NodeNsAt(node.header(), *phases.run_start_ms);
  const int64_t stop_ns = NodeNsAt(node.header(), *phases.run_stop_ms);
  add("before the clock", 0, node.first_ns(), start_ns);
  const size_t count = phases.epochs.size();
  const auto begin_of = [&](size_t epoch) {
    return epoch < count ? NodeNsAt(node.header(), phases.epochs[epoch].begin_ms) : stop_ns;
  };
  add("before epoch 1", 0, start_ns, begin_of(0));
  for (size_t epoch = 0; epoch < count; ++epoch)
    add(absl::StrCat("epoch ", epoch + 1), static_cast<int>(epoch) + 1, begin_of(epoch),
        begin_of(epoch + 1));
  return parts;
}

}  // namespace assay::telemetry
