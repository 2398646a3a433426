#include "worker/agent/meter_options.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"

#include "worker/agent/preflight/ask.h"

namespace assay::agent {
namespace {

constexpr absl::Duration kSlurmPatience = absl::Seconds(10);

// Up to its first dot.
std::string NodeName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  const std::string whole = name.data();
  return whole.substr(0, whole.find('.'));
}

std::chrono::milliseconds TimeoutOf(int32_t configured_ms) {
  constexpr int32_t kDefaultMs = 3000;
  return std::chrono::milliseconds(configured_ms > 0 ? configured_ms : kDefaultMs);
}

std::string AskSlurm(const std::vector<std::string>& what) {
  std::vector<std::string> argv = {"/usr/bin/env", "scontrol", "show"};
  argv.insert(argv.end(), what.begin(), what.end());
  const absl::StatusOr<Answer> answer = Ask(argv, {}, kSlurmPatience);
  return answer.ok() && answer->exit_code == 0 ? answer->text : std::string();
}

std::optional<SlurmOptions> SlurmOfThisJob() {
  const char* const node = std::getenv("SLURMD_NODENAME");
  if (std::getenv("SLURM_JOB_ID") == nullptr || node == nullptr) return std::nullopt;
  return SlurmOptions{.node = node, .show = AskSlurm};
}

}  // namespace

MeterOptions MeterOptionsOf(const v1::WorkerConfig& config) {
  const std::string node = NodeName();
  MeterOptions meters;
  for (const v1::MeterComparison& one : config.meter_comparisons())
    meters.comparisons[one.meter()] = absl::StrCat(one.with(), ", ", one.percent(), " %");
  if (config.has_redfish_meter()) {
    const v1::RedfishMeter& meter = config.redfish_meter();
    meters.redfish = RedfishOptions{.url = absl::StrReplaceAll(meter.url(), {{"{host}", node}}),
                                    .credentials_path = meter.credentials_path(),
                                    .ca_certificate_path = meter.ca_certificate_path(),
                                    .timeout = TimeoutOf(meter.timeout_ms())};
  }
  for (const v1::SnmpMeter& meter : config.snmp_meters()) {
    if (!meter.node().empty() && meter.node() != node) continue;
    meters.snmp.push_back(
        {.address = meter.address(),
         .power_oids = {meter.power_oids().begin(), meter.power_oids().end()},
         .watts_per_unit = meter.watts_per_unit() > 0 ? meter.watts_per_unit() : 1,
         .credentials_path = meter.credentials_path(),
         .timeout = TimeoutOf(meter.timeout_ms())});
  }
  meters.slurm = SlurmOfThisJob();
  return meters;
}

}  // namespace assay::agent
