// What a node does now, as its agent has told last.

#ifndef SERVER_CORE_NODE_FIGURES_H_
#define SERVER_CORE_NODE_FIGURES_H_

#include <cstdint>
#include <optional>

#include "server/core/described.h"

namespace assay::core {

// In the second or so before its newest sample. See NodeFigures in resources.proto. Never in an
// event: it lives in memory alone (Presence).
struct NodeFigures {
  int64_t age_ms = 0;
  std::optional<double> run_cpu_share;
  std::optional<double> other_cpu_share;
  std::optional<int64_t> memory_used_bytes;
  std::optional<int64_t> memory_total_bytes;
  std::optional<double> storage_read_bytes_per_s;
  std::optional<double> storage_written_bytes_per_s;
  std::optional<double> network_received_bytes_per_s;
  std::optional<double> network_sent_bytes_per_s;
  std::optional<double> gpu_share;
  std::optional<double> gpu_watts;
  std::optional<double> node_watts;
  std::optional<int64_t> epoch;
  std::optional<double> quality;
  bool operator==(const NodeFigures&) const = default;
};

// Of older samples nothing more is said.
inline constexpr int64_t kFiguresAgeMaxMs = 24LL * 3600 * 1000;

// As in description.h.
template <class A, Is<NodeFigures> T>
constexpr void Fields(A& a, T& v) {
  a("age_ms", v.age_ms);
  a("run_cpu_share", v.run_cpu_share);
  a("other_cpu_share", v.other_cpu_share);
  a("memory_used_bytes", v.memory_used_bytes);
  a("memory_total_bytes", v.memory_total_bytes);
  a("storage_read_bytes_per_s", v.storage_read_bytes_per_s);
  a("storage_written_bytes_per_s", v.storage_written_bytes_per_s);
  a("network_received_bytes_per_s", v.network_received_bytes_per_s);
  a("network_sent_bytes_per_s", v.network_sent_bytes_per_s);
  a("gpu_share", v.gpu_share);
  a("gpu_watts", v.gpu_watts);
  a("node_watts", v.node_watts);
  a("epoch", v.epoch);
  a("quality", v.quality);
}

}  // namespace assay::core

#endif  // SERVER_CORE_NODE_FIGURES_H_
