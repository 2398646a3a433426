// The checks of nodes before the runs of a set (pre-flight), as plain values.

#ifndef SERVER_CORE_PREFLIGHT_H_
#define SERVER_CORE_PREFLIGHT_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "server/core/id.h"

namespace assay::core {

// What it means that a check has found a problem.
enum class CheckPolicy {
  kRecord,  // nothing: it is kept
  kWarn,    // people are told
  kGate,    // the node takes no run, and is drained
};

// One check of a node: what is asked (`check`, `policy`), and what has come of it.
struct NodeCheck {
  std::string check;  // memory
  CheckPolicy policy = CheckPolicy::kRecord;
  bool is_measured = false;  // else `detail` says why not
  double value = 0;          // in `unit`
  std::string unit;          // GB/s
  std::string detail;
  std::optional<double>
      median;           // of the last kRateCountMax on nodes of its type, to be compared with
  std::string problem;  // empty: none
  bool operator==(const NodeCheck&) const = default;
};

enum class PreflightState {
  kRunning,
  kPassed,
  kFailed,   // a check that is a gate has found a problem, or no answer came in time
  kDropped,  // nobody needs it any more, or the node has left
};

// The place of a node in the check of its gang's fabric.
struct GangPlace {
  std::string gang;  // which nodes: GangKey (fabric.h); empty: the node is checked alone
  int32_t rank = 0;
  int32_t node_count = 0;
  std::string root;  // the worker of rank 0, which tells for all
  bool operator==(const GangPlace&) const = default;
};

// The last pre-flight of a node.
struct Preflight {
  int64_t number = 0;  // of the event that began it: tells it from all others
  SubmissionId submission;
  PreflightState state = PreflightState::kRunning;
  std::string reason;             // why it failed or was dropped
  std::vector<NodeCheck> checks;  // as asked; as judged once it has ended
  int32_t percent_of_median = 80;
  int64_t time_limit_us = 0;
  int64_t started_at_us = 0;
  int64_t deadline_us = 0;  // it has failed if no answer has come
  int64_t ended_at_us = 0;
  GangPlace place;
  std::vector<NodeCheck> node_checks;  // of the node alone, kept while its gang's fabric is checked
  bool operator==(const Preflight&) const = default;
};

// Between two nodes of a gang that are neighbours by rank.
struct FabricLink {
  double latency_us = 0;  // of 8 bytes one way
  double gb_per_s = 0;    // of 64 MiB each way
  bool operator==(const FabricLink&) const = default;
};

// What rank 0 of a gang has gathered. See FabricReport in worker_service.proto.
struct FabricReport {
  std::vector<FabricLink> links;  // of rank r and the next; empty: nothing was measured
  double all_reduce_us = 0;
  double all_reduce_gb_per_s = 0;
  std::vector<int32_t> absent_ranks;
  std::string error;
  bool operator==(const FabricReport&) const = default;
};

// What a worker says of the pre-flight that it was asked for last.
struct PreflightReport {
  int64_t number = 0;  // 0: of none
  bool is_done = false;
  std::vector<NodeCheck> checks;       // is_done; their policy means nothing
  std::optional<FabricReport> fabric;  // is_done, of rank 0 of a gang
  bool operator==(const PreflightReport&) const = default;
};

// The part of a worker in the check of its gang's fabric.
struct FabricOrder {
  std::string name;  // of the check
  int32_t rank = 0;
  int32_t node_count = 0;
  std::string rendezvous_address;  // of rank 0
  std::string token;               // secret of this check
  bool operator==(const FabricOrder&) const = default;
};

// What is asked of a worker.
struct PreflightOrder {
  std::vector<std::string> checks;
  std::string dataset_path;
  bool is_staged = false;  // the dataset will be copied to the node
  int64_t time_limit_us = 0;
  std::optional<FabricOrder> fabric;  // alone
  bool operator==(const PreflightOrder&) const = default;
};

// What an operator wants to be checked. See PreflightConfig in config.proto.
struct PreflightPolicy {
  std::vector<NodeCheck> checks;
  int64_t time_limit_us = 60LL * 1000 * 1000;
  int32_t percent_of_median = 80;
};

// Which node has passed for which set.
struct PassedKey {
  SubmissionId submission;
  std::string node;  // NodeName
  auto operator<=>(const PassedKey&) const = default;
};

// Of a check that gives a rate, on nodes of one type.
struct RateKey {
  std::string node_type;
  std::string check;
  auto operator<=>(const RateKey&) const = default;
};
struct Rates {
  std::vector<double> values;  // the last kRateCountMax, oldest first
  bool operator==(const Rates&) const = default;
};
inline constexpr size_t kRateCountMax = 10;
inline constexpr size_t kRateKeyCountMax = 1000;  // more are not kept
inline constexpr size_t kNodeCheckCountMax = 32;

// The checks of a gang's fabric: of the better of a node's two links.
inline constexpr char kFabricLinkRate[] = "fabric";         // GB/s
inline constexpr char kFabricLatency[] = "fabric-latency";  // us
inline constexpr int64_t kFabricNodeCountMax = 1024;        // that the trainer's transport connects

// For the last check, which begins within the time limit, to end, and for the answer to come.
inline constexpr int64_t kPreflightAnswerTimeUs = 30LL * 1'000'000;

absl::string_view ToString(CheckPolicy policy);    // "GATE"
absl::string_view ToString(PreflightState state);  // "PASSED"

}  // namespace assay::core

#endif  // SERVER_CORE_PREFLIGHT_H_
