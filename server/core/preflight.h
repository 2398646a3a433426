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
  bool operator==(const Preflight&) const = default;
};

// What a worker says of the pre-flight that it was asked for last.
struct PreflightReport {
  int64_t number = 0;  // 0: of none
  bool is_done = false;
  std::vector<NodeCheck> checks;  // is_done; their policy means nothing
  bool operator==(const PreflightReport&) const = default;
};

// What is asked of a worker.
struct PreflightOrder {
  std::vector<std::string> checks;
  std::string dataset_path;
  bool is_staged = false;  // the dataset will be copied to the node
  int64_t time_limit_us = 0;
  bool operator==(const PreflightOrder&) const = default;
};

// What an operator wants to be checked. See PreflightConfig in config.proto.
struct PreflightPolicy {
  std::vector<NodeCheck> checks;
  int64_t time_limit_us = 60LL * 1000 * 1000;
  int32_t percent_of_median = 80;
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

absl::string_view ToString(CheckPolicy policy);    // "GATE"
absl::string_view ToString(PreflightState state);  // "PASSED"

}  // namespace assay::core

#endif  // SERVER_CORE_PREFLIGHT_H_
