#include "worker/agent/inventory.h"

#include <gnu/libc-version.h>
#include <grpcpp/grpcpp.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/stubs/common.h"
#include "nlohmann/json.hpp"

#include "common/backend_names.h"
#include "common/log.h"
#include "common/process.h"
#include "common/status.h"

namespace assay::agent {
namespace {

constexpr absl::Duration kTrainerAnswer = absl::Seconds(30);
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kGB = 1'000'000'000;
const char kCpuDirectory[] = "/sys/devices/system/cpu";

// One line of /sys or /proc; empty if it is not there.
std::string ReadLine(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : std::string();
}

std::vector<std::string> EntriesOf(const std::string& directory, absl::string_view prefix) {
  std::vector<std::string> result;
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(directory);
  if (!names.ok()) return result;
  for (const std::string& name : *names)
    if (absl::StartsWith(name, prefix)) result.push_back(name);
  return result;
}

// "cpu0", "cpu1" ..., not "cpufreq".
std::vector<std::string> Cpus() {
  std::vector<std::string> cpus = EntriesOf(kCpuDirectory, "cpu");
  cpus.erase(std::remove_if(cpus.begin(), cpus.end(),
                            [](const std::string& name) {
                              int number = 0;
                              return !absl::SimpleAtoi(name.substr(3), &number);
                            }),
             cpus.end());
  return cpus;
}

// The value of "key : value" in a text such as /proc/cpuinfo, at its first occurrence.
std::string FirstValue(absl::string_view text, absl::string_view key) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> halves = absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (halves.size() == 2 && absl::StripAsciiWhitespace(halves[0]) == key)
      return std::string(absl::StripAsciiWhitespace(halves[1]));
  }
  return "";
}

void ProbeTopology(Inventory* inventory) {
  std::set<std::string> sockets;
  std::set<std::pair<std::string, std::string>> cores;
  for (const std::string& cpu : Cpus()) {
    const std::string topology = absl::StrCat(kCpuDirectory, "/", cpu, "/topology/");
    const std::string socket = ReadLine(topology + "physical_package_id");
    const std::string core = ReadLine(topology + "core_id");
    if (socket.empty() || core.empty()) continue;  // offline
    sockets.insert(socket);
    cores.insert({socket, core});
    ++inventory->thread_count;
  }
  inventory->socket_count = std::max<int>(1, static_cast<int>(sockets.size()));
  inventory->core_count = static_cast<int>(cores.size());
  if (inventory->thread_count == 0)
    inventory->thread_count = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (inventory->core_count == 0) inventory->core_count = inventory->thread_count;
  inventory->numa_node_count =
      static_cast<int>(EntriesOf("/sys/devices/system/node", "node").size());
}

// "L1 Data 32K, L1 Instruction 32K, L2 Unified 1024K" of the first core.
std::string CacheText() {
  std::vector<std::string> caches;
  const std::string directory = absl::StrCat(kCpuDirectory, "/cpu0/cache");
  for (const std::string& index : EntriesOf(directory, "index")) {
    const std::string path = JoinPath(directory, index);
    caches.push_back(absl::StrCat("L", ReadLine(JoinPath(path, "level")), " ",
                                  ReadLine(JoinPath(path, "type")), " ",
                                  ReadLine(JoinPath(path, "size"))));
  }
  return absl::StrJoin(caches, ", ");
}

void ProbeCpu(Inventory* inventory) {
  const absl::StatusOr<std::string> cpuinfo = ReadFile("/proc/cpuinfo");
  if (cpuinfo.ok()) {
    inventory->cpu_model = FirstValue(*cpuinfo, "model name");
    const std::string mhz = FirstValue(*cpuinfo, "cpu MHz");
    if (!mhz.empty()) inventory->cpu_frequency = absl::StrCat(mhz, " MHz");
  }
  int64_t khz = 0;
  if (absl::SimpleAtoi(ReadLine(absl::StrCat(kCpuDirectory, "/cpu0/cpufreq/cpuinfo_max_freq")),
                       &khz)) {
    inventory->cpu_frequency = absl::StrCat(khz / 1000, " MHz");
  }
  inventory->cpu_caches = CacheText();
}

std::string FileSystemType(const std::string& path) {
  const absl::StatusOr<std::string> mounts = ReadFile("/proc/self/mounts");
  std::string best;
  std::string type;
  if (!mounts.ok()) return type;
  for (const absl::string_view line : absl::StrSplit(*mounts, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, ' ');
    if (fields.size() < 3 || fields[1].size() < best.size()) continue;
    const std::string prefix = fields[1] == "/" ? "/" : fields[1] + "/";
    if (!absl::StartsWith(path + "/", prefix)) continue;
    best = fields[1];
    type = fields[2];
  }
  return type;
}

void ProbeStorage(const std::string& directory, Inventory* inventory) {
  struct statvfs info {};
  if (statvfs(directory.c_str(), &info) == 0)
    inventory->storage_bytes =
        static_cast<int64_t>(info.f_blocks) * static_cast<int64_t>(info.f_frsize);
  inventory->storage_type = FileSystemType(directory);
}

std::string NetworkText() {
  std::vector<std::string> links;
  for (const std::string& name : EntriesOf("/sys/class/net", "")) {
    if (name == "lo") continue;
    int64_t mbits = 0;
    const std::string speed = ReadLine(absl::StrCat("/sys/class/net/", name, "/speed"));
    const bool is_known = absl::SimpleAtoi(speed, &mbits) && mbits > 0;
    links.push_back(is_known ? absl::StrCat(name, " ", mbits, " Mbit/s") : name);
  }
  for (const std::string& name : EntriesOf("/sys/class/infiniband", "")) {
    const std::string rate =
        ReadLine(absl::StrCat("/sys/class/infiniband/", name, "/ports/1/rate"));
    links.push_back(absl::StrCat(name, " InfiniBand ", rate));
  }
  return absl::StrJoin(links, ", ");
}

std::string OperatingSystem() {
  const absl::StatusOr<std::string> release = ReadFile("/etc/os-release");
  if (!release.ok()) return "Linux";
  for (const absl::string_view line : absl::StrSplit(*release, '\n')) {
    absl::string_view value = line;
    if (!absl::ConsumePrefix(&value, "PRETTY_NAME=")) continue;
    absl::ConsumePrefix(&value, "\"");
    absl::ConsumeSuffix(&value, "\"");
    return std::string(value);
  }
  return "Linux";
}

std::string LibraryText() {
  return absl::StrCat("glibc ", gnu_get_libc_version(), ", gRPC ", grpc::Version(), ", protobuf ",
                      google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION));
}

// What `program option` prints; empty if it fails.
std::string AnswerOf(const std::string& program, const std::string& option) {
  std::string path = (std::filesystem::temp_directory_path() / "assay_inventory_XXXXXX").string();
  const UniqueFd file(mkstemp(path.data()));
  if (!file.is_open()) return "";
  const auto remove = absl::MakeCleanup([&path] { unlink(path.c_str()); });
  const absl::StatusOr<ProcessId> child =
      Spawn(SpawnOptions{.argv = {program, option}, .output_path = path});
  if (!child.ok()) {
    LOG(WARNING) << "trainer not asked: " << child.status();
    return "";
  }
  absl::StatusOr<int> code = WaitForExit(*child, kTrainerAnswer);
  if (!code.ok()) code = StopGroup(*child, absl::Seconds(1));
  const absl::StatusOr<std::string> text = ReadFile(path);
  return code.ok() && *code == 0 && text.ok() ? *text : "";
}

void ProbeTrainer(const std::string& program, Inventory* inventory) {
  inventory->framework = std::string(absl::StripAsciiWhitespace(AnswerOf(program, "--version")));
  // Why others cannot be used is said beside them.
  for (const absl::string_view line :
       absl::StrSplit(AnswerOf(program, "--backends"), '\n', absl::SkipWhitespace())) {
    const absl::string_view name = absl::StripAsciiWhitespace(line);
    if (std::find(std::begin(kBackendNames), std::end(kBackendNames), name) !=
        std::end(kBackendNames))
      inventory->backends.emplace_back(name);
  }
}

std::string Count(int64_t value) {
  return absl::StrCat(value);
}

}  // namespace

Inventory Probe(const v1::WorkerConfig& config) {
  Inventory inventory;
  utsname name{};
  if (uname(&name) == 0) {
    inventory.host_name = name.nodename;
    inventory.kernel = absl::StrCat(name.sysname, " ", name.release, " ", name.machine);
  }
  ProbeTopology(&inventory);
  ProbeCpu(&inventory);
  inventory.memory_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  ProbeStorage(config.data_directory(), &inventory);
  inventory.networking = NetworkText();
  inventory.operating_system = OperatingSystem();
  inventory.libraries = LibraryText();
  ProbeTrainer(config.trainer_program(), &inventory);
  inventory.accelerators = FindAccelerators();
  return inventory;
}

std::string SystemDescriptionJson(const Inventory& inventory) {
  const bool has_accelerator = !inventory.accelerators.empty();
  const Accelerator gpu = has_accelerator ? inventory.accelerators.front() : Accelerator{};
  const int socket_count = std::max(1, inventory.socket_count);
  const std::map<std::string, std::string> members = {
      {"submitter", ""},
      {"division", ""},
      {"status", ""},
      {"system_name", inventory.host_name},
      {"number_of_nodes", "1"},
      {"host_processors_per_node", Count(socket_count)},
      {"host_processor_model_name", inventory.cpu_model},
      {"host_processor_core_count", Count(inventory.core_count / socket_count)},
      {"host_processor_vcpu_count", Count(inventory.thread_count / socket_count)},
      {"host_processor_frequency", inventory.cpu_frequency},
      {"host_processor_caches", inventory.cpu_caches},
      {"host_processor_interconnect", ""},
      {"host_memory_capacity", absl::StrCat(inventory.memory_bytes / kGiB, " GiB")},
      {"host_storage_type", inventory.storage_type},
      {"host_storage_capacity", absl::StrCat(inventory.storage_bytes / kGB, " GB")},
      {"host_networking", inventory.networking},
      {"host_networking_topology", ""},
      {"host_memory_configuration", absl::StrCat(inventory.numa_node_count, " NUMA nodes")},
      {"accelerators_per_node", Count(static_cast<int64_t>(inventory.accelerators.size()))},
      {"accelerator_model_name", has_accelerator ? gpu.model : "N/A"},
      {"accelerator_host_interconnect",
       gpu.pcie_generation > 0 ? absl::StrCat("PCIe ", gpu.pcie_generation, ".0 x", gpu.pcie_lanes)
                               : ""},
      {"accelerator_frequency", gpu.clock_mhz > 0 ? absl::StrCat(gpu.clock_mhz, " MHz") : ""},
      {"accelerator_on-chip_memories", ""},
      {"accelerator_memory_configuration", ""},
      {"accelerator_memory_capacity",
       has_accelerator ? absl::StrCat(gpu.memory_bytes / kGiB, " GiB") : ""},
      {"accelerator_interconnect", ""},
      {"accelerator_interconnect_topology", ""},
      {"cooling", ""},
      {"hw_notes", ""},
      {"framework", inventory.framework},
      {"other_software_stack", inventory.libraries},
      {"operating_system", inventory.operating_system},
      {"sw_notes", inventory.kernel}};
  return nlohmann::json(members).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

v1::Capabilities CapabilitiesOf(const Inventory& inventory, const v1::WorkerConfig& config,
                                const std::string& rendezvous_address) {
  v1::Capabilities capabilities;
  capabilities.set_host_name(inventory.host_name);
  int core_count = config.core_count();
  if (core_count == 0) core_count = config.cores_size();
  capabilities.set_core_count(core_count > 0 ? core_count : inventory.core_count);
  capabilities.set_cpu_model(inventory.cpu_model);
  capabilities.set_memory_bytes(inventory.memory_bytes);
  capabilities.set_accelerator_count(static_cast<int32_t>(inventory.accelerators.size()));
  if (!inventory.accelerators.empty())
    capabilities.set_accelerator_model(inventory.accelerators.front().model);
  for (const std::string& backend : inventory.backends)
    capabilities.add_backends(backend);
  capabilities.set_rendezvous_address(rendezvous_address);
  if (!config.node_cache().directory().empty())
    capabilities.set_cache_bytes(config.node_cache().quota_gb() * kGB);
  return capabilities;
}

}  // namespace assay::agent
