#include "worker/agent/config.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/file.h"
#include "common/status.h"
#include "worker/agent/text_proto.h"

namespace assay::agent {
namespace {

constexpr size_t kWorkerNameBytesMax = 63;
constexpr int kPortMax = 65535;
constexpr int64_t kQuotaGbMax = 1'000'000'000;

bool IsWorkerName(absl::string_view name) {
  return !name.empty() && name.size() <= kWorkerNameBytesMax && name.front() != '-' &&
         name.back() != '-' && std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_islower(static_cast<unsigned char>(c)) ||
                  absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-';
         });
}

bool IsAddress(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) return address.size() > 5;
  const size_t colon = address.rfind(':');
  int port = 0;
  return colon != absl::string_view::npos && colon > 0 &&
         absl::SimpleAtoi(address.substr(colon + 1), &port) && port > 0 && port <= kPortMax;
}

bool IsEnvironmentName(absl::string_view name) {
  return !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name.front())) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
         });
}

// 1.3.6.1, with or without a dot in front.
bool IsObjectId(absl::string_view id) {
  constexpr size_t kPartsMax = 128;
  absl::ConsumePrefix(&id, ".");
  const std::vector<absl::string_view> parts = absl::StrSplit(id, '.');
  return parts.size() > 1 && parts.size() <= kPartsMax &&
         std::all_of(parts.begin(), parts.end(), [](absl::string_view part) {
           uint32_t number = 0;
           return absl::SimpleAtoi(part, &number) &&
                  absl::ascii_isdigit(static_cast<unsigned char>(part[0]));
         });
}

// Collects problems; each method looks at one part.
class Checker {
 public:
  explicit Checker(const v1::WorkerConfig& config) : config_(config) {}

  std::vector<std::string> Run() && {
    CheckIdentity();
    CheckPaths();
    CheckCores();
    CheckComparisons();
    CheckRedfish();
    for (const v1::SnmpMeter& meter : config_.snmp_meters())
      CheckSnmp(meter);
    CheckMaps();
    return std::move(problems_);
  }

 private:
  template <typename... Pieces>
  void Add(const Pieces&... pieces) {
    problems_.push_back(absl::StrCat(pieces...));
  }

  void CheckIdentity() {
    if (!IsWorkerName(config_.name()))
      Add("name: \"", config_.name(),
          "\" is not 1 to 63 lower-case letters, digits and inner hyphens");
    if (!IsAddress(config_.server_address()))
      Add("server_address: \"", config_.server_address(),
          "\" is not host:port, nor unix:/path/to/socket");
    if (!config_.enrolment_token().empty() && !config_.enrolment_token_path().empty())
      Add("enrolment_token and enrolment_token_path: give one of them");
    if (!config_.ca_certificate().empty() && !config_.ca_certificate_path().empty())
      Add("ca_certificate and ca_certificate_path: give one of them");
  }

  void CheckPaths() {
    CheckAbsolute("data_directory", config_.data_directory(), /*is_required=*/true);
    const bool needs_ca = !absl::StartsWith(config_.server_address(), "unix:");
    CheckAbsolute("ca_certificate_path", config_.ca_certificate_path(),
                  needs_ca && config_.ca_certificate().empty());
    CheckAbsolute("enrolment_token_path", config_.enrolment_token_path(), false);
    CheckAbsolute("stage_directory", config_.stage_directory(), false);
    CheckAbsolute("trainer_program", config_.trainer_program(), false);
    CheckAbsolute("node_cache.directory", config_.node_cache().directory(), false);
    // What is there is closed to ranks at each start.
    if (absl::StartsWith(JoinPath(config_.node_cache().directory(), ""),
                         JoinPath(config_.data_directory(), "")))
      Add("node_cache.directory: \"", config_.node_cache().directory(),
          "\" is in data_directory, which ranks cannot read: name one beside it");
    const int64_t quota_gb = config_.node_cache().quota_gb();
    if (!config_.node_cache().directory().empty() && (quota_gb < 1 || quota_gb > kQuotaGbMax))
      Add("node_cache.quota_gb: ", quota_gb, " is not between 1 and ", kQuotaGbMax);
    for (const std::string& path : config_.software_directories())
      CheckAbsolute("software_directories", path, /*is_required=*/true);
  }

  void CheckAbsolute(absl::string_view field, const std::string& path, bool is_required) {
    if (path.empty()) {
      if (is_required) Add(field, ": missing");
    } else if (path[0] != '/') {
      Add(field, ": \"", path, "\" is not an absolute path");
    }
  }

  void CheckCores() {
    if (config_.process_count_max() < 0)
      Add("process_count_max: ", config_.process_count_max(), " is negative");
    if (config_.core_count() < 0) Add("core_count: ", config_.core_count(), " is negative");
    cpu_set_t usable;
    if (sched_getaffinity(0, sizeof(usable), &usable) != 0) CPU_ZERO(&usable);
    std::set<int> seen;
    for (const int core : config_.cores()) {
      if (core < 0 || core >= CPU_SETSIZE || !CPU_ISSET(static_cast<size_t>(core), &usable)) {
        Add("cores: ", core, " is not a core that this process may use");
      } else if (!seen.insert(core).second) {
        Add("cores: ", core, " is given twice");
      }
    }
    if (config_.cores_size() > 0 && config_.core_count() > config_.cores_size())
      Add("core_count: ", config_.core_count(), " is more than the ", config_.cores_size(),
          " cores given");
  }

  void CheckComparisons() {
    constexpr double kPercentMax = 5;
    for (const v1::MeterComparison& comparison : config_.meter_comparisons()) {
      if (comparison.meter() != "rapl")
        Add("meter_comparisons: meter: \"", comparison.meter(),
            "\" is none of components; there is rapl");
      if (comparison.with().empty())
        Add("meter_comparisons: with: missing: say what ", comparison.meter(),
            " was compared with, and when");
      if (!(comparison.percent() >= 0 && comparison.percent() <= kPercentMax))
        Add("meter_comparisons: percent: ", comparison.percent(),
            " is not between 0 and 5, as a power entry needs");
    }
  }

  void CheckTimeout(absl::string_view field, int32_t timeout_ms) {
    constexpr int32_t kTimeoutMaxMs = 60'000;
    if (timeout_ms < 0 || timeout_ms > kTimeoutMaxMs)
      Add(field, ": ", timeout_ms, " is not between 0 and ", kTimeoutMaxMs);
  }

  void CheckRedfish() {
    if (!config_.has_redfish_meter()) return;
    const v1::RedfishMeter& meter = config_.redfish_meter();
    if (!absl::StartsWith(meter.url(), "https://"))
      Add("redfish_meter.url: \"", meter.url(), "\" does not begin with https://");
    CheckAbsolute("redfish_meter.credentials_path", meter.credentials_path(), true);
    CheckAbsolute("redfish_meter.ca_certificate_path", meter.ca_certificate_path(), false);
    CheckTimeout("redfish_meter.timeout_ms", meter.timeout_ms());
  }

  void CheckSnmp(const v1::SnmpMeter& meter) {
    constexpr int kOutletsMax = 16;
    if (meter.address().empty())
      Add("snmp_meters.address: missing: name the power distribution unit");
    if (meter.power_oids_size() < 1 || meter.power_oids_size() > kOutletsMax)
      Add("snmp_meters.power_oids: are ", meter.power_oids_size(), ", not 1 to ", kOutletsMax,
          " that feed the node");
    for (const std::string& id : meter.power_oids())
      if (!IsObjectId(id))
        Add("snmp_meters.power_oids: \"", id, "\" is no object in numbers, like 1.3.6.1.4.1.318.1");
    if (!(meter.watts_per_unit() >= 0 && std::isfinite(meter.watts_per_unit())))
      Add("snmp_meters.watts_per_unit: ", meter.watts_per_unit(), " is not above 0");
    CheckAbsolute("snmp_meters.credentials_path", meter.credentials_path(), true);
    CheckTimeout("snmp_meters.timeout_ms", meter.timeout_ms());
  }

  void CheckMaps() {
    for (const auto& [key, value] : config_.labels())
      if (key.empty() || value.empty())
        Add("labels: \"", key, "\": \"", value, "\" has an empty half");
    for (const auto& [name, value] : config_.trainer_environment()) {
      if (!IsEnvironmentName(name))
        Add("trainer_environment: \"", name, "\" is no name of an environment variable");
      if (absl::StrContains(value, std::string(1, '\0')))
        Add("trainer_environment: the value of ", name, " holds a zero byte");
    }
  }

  const v1::WorkerConfig& config_;
  std::vector<std::string> problems_;
};

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "localhost";
}

}  // namespace

std::vector<std::string> ProblemsOf(const v1::WorkerConfig& config) {
  std::vector<std::string> problems = Checker(config).Run();
  std::sort(problems.begin(), problems.end());
  return problems;
}

v1::WorkerConfig WithDefaults(v1::WorkerConfig config, const std::string& program_directory) {
  if (config.stage_directory().empty())
    config.set_stage_directory(JoinPath(config.data_directory(), "stage"));
  if (config.trainer_program().empty())
    config.set_trainer_program(JoinPath(program_directory, "assay-train"));
  if (config.rendezvous_host().empty()) config.set_rendezvous_host(HostName());
  return config;
}

absl::StatusOr<v1::WorkerConfig> LoadConfig(const std::string& path) {
  v1::WorkerConfig config;
  RETURN_IF_ERROR(LoadTextProto(path, &config));
  const std::vector<std::string> problems = ProblemsOf(config);
  if (!problems.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", absl::StrJoin(problems, absl::StrCat("\n", path, ": "))));
  }
  ASSIGN_OR_RETURN(const std::string directory, ProgramDirectory());
  return WithDefaults(std::move(config), directory);
}

}  // namespace assay::agent
