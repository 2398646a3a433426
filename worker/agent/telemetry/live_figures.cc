#include "worker/agent/telemetry/live_figures.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "common/status.h"

namespace assay::agent {
namespace {

using telemetry::kMissing;

constexpr absl::string_view kBusy[] = {"cpu.user", "cpu.nice", "cpu.system", "cpu.irq",
                                       "cpu.softirq"};
constexpr absl::string_view kNotBusy[] = {"cpu.idle", "cpu.iowait", "cpu.steal"};

// What the API takes (server/api/limit_table.cc); more is a counter gone wrong.
constexpr double kBytesPerSecondMax = 1e15;
constexpr double kWattsMax = 1e6;

struct Member {
  const char* name;
  std::optional<double> LiveFigures::*value;
};

constexpr Member kMembers[] = {
    {"run_cpu_share", &LiveFigures::run_cpu_share},
    {"other_cpu_share", &LiveFigures::other_cpu_share},
    {"memory_available_bytes", &LiveFigures::memory_available_bytes},
    {"storage_read_bytes_per_s", &LiveFigures::storage_read_bytes_per_s},
    {"storage_written_bytes_per_s", &LiveFigures::storage_written_bytes_per_s},
    {"network_received_bytes_per_s", &LiveFigures::network_received_bytes_per_s},
    {"network_sent_bytes_per_s", &LiveFigures::network_sent_bytes_per_s},
    {"gpu_share", &LiveFigures::gpu_share},
    {"gpu_watts", &LiveFigures::gpu_watts},
    {"node_watts", &LiveFigures::node_watts},
};

bool IsOneOf(absl::string_view name, std::span<const absl::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsBetween(absl::string_view name, absl::string_view prefix, absl::string_view suffix) {
  return absl::StartsWith(name, prefix) && absl::EndsWith(name, suffix);
}

std::optional<double> Within(std::optional<double> value, double max) {
  return value.has_value() && *value >= 0 && *value <= max ? value : std::nullopt;
}

// The mean or sum of what is known; nullopt where nothing is.
std::optional<double> Mean(const std::vector<size_t>& columns, std::span<const int64_t> values) {
  double sum = 0;
  int count = 0;
  for (const size_t column : columns) {
    if (values[column] == kMissing) continue;
    sum += static_cast<double>(values[column]);
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional<double>(sum / count);
}

// nullopt also where one of them is missing.
std::optional<double> Sum(const std::vector<size_t>& columns, std::span<const int64_t> values) {
  double sum = 0;
  for (const size_t column : columns) {
    if (values[column] == kMissing) return std::nullopt;
    sum += static_cast<double>(values[column]);
  }
  return columns.empty() ? std::nullopt : std::optional<double>(sum);
}

}  // namespace

// Lines "name value" between two that say of which sample they are, so that a reader who comes in
// between two samples knows.
std::string LiveFiguresText(const LiveFigures& figures) {
  std::string text = absl::StrCat("at ", figures.at_ns, "\n");
  for (const Member& member : kMembers)
    if ((figures.*member.value).has_value())
      absl::StrAppendFormat(&text, "%s %.17g\n", member.name, *(figures.*member.value));
  const std::string end = absl::StrCat("end ", figures.at_ns, "\n");
  text.append(kLiveFiguresBytes - std::min(kLiveFiguresBytes, text.size() + end.size()), ' ');
  return absl::StrCat(text, end);
}

std::optional<LiveFigures> ParseLiveFigures(absl::string_view text) {
  LiveFigures figures;
  std::optional<int64_t> end_ns;
  if (text.size() != kLiveFiguresBytes) return std::nullopt;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> words =
        absl::StrSplit(absl::StripLeadingAsciiWhitespace(line), absl::MaxSplits(' ', 1));
    int64_t at_ns = 0;
    double value = 0;
    const bool is_stamp = absl::SimpleAtoi(words.second, &at_ns);
    if (words.first == "at" && is_stamp) figures.at_ns = at_ns;
    if (words.first == "end" && is_stamp) end_ns = at_ns;
    for (const Member& member : kMembers)
      if (words.first == member.name && absl::SimpleAtod(words.second, &value) &&
          std::isfinite(value) && value >= 0)
        figures.*member.value = value;
  }
  return end_ns == figures.at_ns ? std::optional<LiveFigures>(figures) : std::nullopt;
}

LiveFile::LiveFile(const std::string& path, const std::vector<telemetry::Column>& columns)
    : file_(
          open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kPrivateFile)) {
  if (!file_.is_open()) status_ = absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", path));
  for (size_t c = 0; c < columns.size(); ++c) {
    const std::string& name = columns[c].name;
    const bool is_storage = absl::StartsWith(name, "disk.") || absl::StartsWith(name, "server.");
    const bool is_network =
        absl::StartsWith(name, "network.") || absl::StartsWith(name, "infiniband.");
    if (IsOneOf(name, kBusy)) busy_.push_back(c);
    if (IsOneOf(name, kNotBusy)) not_busy_.push_back(c);
    if (name == "run.cpu") run_.push_back(c);
    if (name == "memory.available") memory_ = c;
    if (is_storage && absl::EndsWith(name, ".read")) read_.push_back(c);
    if (is_storage && absl::EndsWith(name, ".written")) written_.push_back(c);
    if (is_network && absl::EndsWith(name, ".received")) received_.push_back(c);
    if (is_network && absl::EndsWith(name, ".sent")) sent_.push_back(c);
    if (IsBetween(name, "gpu.", ".utilization")) gpus_.push_back(c);
    if (absl::StartsWith(name, "power.gpu.")) gpu_powers_.push_back(c);
    if (absl::StartsWith(name, "power.node.") && !power_.has_value()) {
      power_ = c;
      power_watts_ = columns[c].unit == "uW" ? 1e-6 : columns[c].unit == "mW" ? 1e-3 : 1;
    }
    if (absl::StartsWith(name, "energy.node.") && !energy_.has_value()) energy_ = c;
  }
}

// What the columns grew by together since the sample before.
std::optional<double> LiveFile::Grown(const Columns& columns,
                                      std::span<const int64_t> values) const {
  double sum = 0;
  for (const size_t column : columns) {
    const int64_t before = last_[column];
    const int64_t now = values[column];
    if (before == kMissing || now == kMissing || now < before) return std::nullopt;
    sum += static_cast<double>(now) - static_cast<double>(before);
  }
  return columns.empty() ? std::nullopt : std::optional<double>(sum);
}

// Ticks of the run and of the node are not counted at the same moment, and a process that was
// found just now brings all that it has used before.
void LiveFile::SetShares(std::span<const int64_t> values, LiveFigures* figures) const {
  const std::optional<double> busy_ms = Grown(busy_, values);
  const std::optional<double> rest_ms = Grown(not_busy_, values);
  const std::optional<double> run_ms = Grown(run_, values);
  if (!busy_ms.has_value() || !rest_ms.has_value() || !run_ms.has_value()) return;
  const double all_ms = *busy_ms + *rest_ms;
  if (all_ms <= 0) return;
  figures->run_cpu_share = std::min(*run_ms, *busy_ms) / all_ms;
  figures->other_cpu_share = std::max(0.0, *busy_ms - *run_ms) / all_ms;
}

LiveFigures LiveFile::Compare(int64_t node_ns, std::span<const int64_t> values) const {
  LiveFigures figures{.at_ns = node_ns};
  SetShares(values, &figures);
  if (memory_.has_value() && values[*memory_] >= 0)
    figures.memory_available_bytes = static_cast<double>(values[*memory_]);
  const double passed_s = static_cast<double>(node_ns - last_ns_) * 1e-9;
  const auto rate = [&](const Columns& columns) {
    const std::optional<double> grown = Grown(columns, values);
    return Within(grown.has_value() ? std::optional<double>(*grown / passed_s) : std::nullopt,
                  kBytesPerSecondMax);
  };
  figures.storage_read_bytes_per_s = rate(read_);
  figures.storage_written_bytes_per_s = rate(written_);
  figures.network_received_bytes_per_s = rate(received_);
  figures.network_sent_bytes_per_s = rate(sent_);
  if (const std::optional<double> percent = Mean(gpus_, values); percent.has_value())
    figures.gpu_share = Within(*percent / 100, 1);
  if (const std::optional<double> mw = Sum(gpu_powers_, values); mw.has_value())
    figures.gpu_watts = Within(*mw * 1e-3, kWattsMax);
  if (power_.has_value() && values[*power_] != kMissing) {
    figures.node_watts = Within(static_cast<double>(values[*power_]) * power_watts_, kWattsMax);
  } else if (energy_.has_value()) {
    const std::optional<double> uj = Grown({*energy_}, values);
    if (uj.has_value()) figures.node_watts = Within(*uj * 1e-6 / passed_s, kWattsMax);
  }
  return figures;
}

absl::Status LiveFile::Take(int64_t node_ns, std::span<const int64_t> values) {
  RETURN_IF_ERROR(status_);
  if (!last_.empty() && node_ns > last_ns_) {
    const std::string text = LiveFiguresText(Compare(node_ns, values));
    if (pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
      status_ = absl::ErrnoToStatus(errno, "cannot write what the node does now");
  }
  last_ns_ = node_ns;
  last_.assign(values.begin(), values.end());
  return status_;
}

}  // namespace assay::agent
