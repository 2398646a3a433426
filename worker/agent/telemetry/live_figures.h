// What a node does now, as a few figures from the two newest samples, and the file in which they
// reach the agent: witness/figures of a run's directory.

#ifndef WORKER_AGENT_TELEMETRY_LIVE_FIGURES_H_
#define WORKER_AGENT_TELEMETRY_LIVE_FIGURES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "common/file.h"
#include "common/telemetry/series.h"

namespace assay::agent {

// As NodeFigures in resources.proto. None is below 0 or infinite, and shares are at most 1; what a
// sample lacks, or a counter that was set back hides, is nullopt.
struct LiveFigures {
  int64_t at_ns = 0;  // of the newer sample, by the node's clock
  std::optional<double> run_cpu_share;
  std::optional<double> other_cpu_share;
  std::optional<double> memory_available_bytes;
  std::optional<double> storage_read_bytes_per_s;
  std::optional<double> storage_written_bytes_per_s;
  std::optional<double> network_received_bytes_per_s;
  std::optional<double> network_sent_bytes_per_s;
  std::optional<double> gpu_share;
  std::optional<double> gpu_watts;
  std::optional<double> node_watts;
  bool operator==(const LiveFigures&) const = default;
};

// The text that the file holds, kLiveFiguresBytes long, and back. nullopt for any other text.
inline constexpr size_t kLiveFiguresBytes = 1024;
std::string LiveFiguresText(const LiveFigures& figures);
std::optional<LiveFigures> ParseLiveFigures(absl::string_view text);

// Keeps such a file. Not thread-safe.
class LiveFile {
 public:
  // Nothing is written to it if it cannot be made; the first Take says why.
  LiveFile(const std::string& path, const std::vector<telemetry::Column>& columns);

  // Takes a sample of all sources, with a value for each column. From the second on the file says
  // what happened since the one before. It is written in place, in one piece: a new file for each
  // sample would have the file system write it to the disk at once.
  absl::Status Take(int64_t node_ns, std::span<const int64_t> values);

 private:
  using Columns = std::vector<size_t>;
  LiveFigures Compare(int64_t node_ns, std::span<const int64_t> values) const;
  std::optional<double> Grown(const Columns& columns, std::span<const int64_t> values) const;
  void SetShares(std::span<const int64_t> values, LiveFigures* figures) const;

  absl::Status status_;
  UniqueFd file_;
  Columns busy_, not_busy_, run_, read_, written_, received_, sent_, gpus_, gpu_powers_;
  std::optional<size_t> memory_;
  std::optional<size_t> power_;  // of the whole node
  double power_watts_ = 1;       // that one of its unit is
  std::optional<size_t> energy_;
  int64_t last_ns_ = 0;
  std::vector<int64_t> last_;  // the sample before; empty: there was none
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_TELEMETRY_LIVE_FIGURES_H_
