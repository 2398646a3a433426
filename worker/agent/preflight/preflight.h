// `assay-worker preflight`: the checks of this node one after the other, as a process of its own,
// so that it may be killed.

#ifndef WORKER_AGENT_PREFLIGHT_PREFLIGHT_H_
#define WORKER_AGENT_PREFLIGHT_PREFLIGHT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "worker/agent/preflight/check.h"

namespace assay::agent {

inline constexpr char kPreflightMode[] = "preflight";

// All that this node can check, in the order in which it is done: what must see a quiet node first.
const std::vector<std::string>& PreflightChecks();

// What `assay-worker preflight` is to do.
struct PreflightFlags {
  std::vector<std::string> checks;  // of PreflightChecks()
  CheckOptions options;
  std::vector<int> cores;                         // on which alone; empty: any
  absl::Duration time_limit = absl::Seconds(60);  // no check begins later
  bool is_json = false;
  std::string output_path;  // where the JSON goes, whole or not at all; empty: stdout
};

// Flags as kPreflightUsage names them. INVALID_ARGUMENT for another one or a bad value.
absl::StatusOr<PreflightFlags> ParsePreflightFlags(const std::vector<std::string>& arguments);
extern const char kPreflightUsage[];

// The arguments that ParsePreflightFlags reads to these flags.
std::vector<std::string> ArgumentsOf(const PreflightFlags& flags);

// Carries the checks out, for up to a minute. Changes on which cores this process may run.
std::vector<CheckResult> RunPreflight(const PreflightFlags& flags);

// {"checks": [{"check": "memory", "is_measured": true, "value": 12.5, ...}, ...]}
std::string PreflightJson(const std::vector<CheckResult>& results);
// INVALID_ARGUMENT for anything else.
absl::StatusOr<std::vector<CheckResult>> ParsePreflightJson(absl::string_view text);

// A line for each check, for people.
std::string PreflightText(const std::vector<CheckResult>& results);

}  // namespace assay::agent

#endif  // WORKER_AGENT_PREFLIGHT_PREFLIGHT_H_
