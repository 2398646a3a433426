// What this node is: capabilities for placement, and the system description that MLPerf asks for.

#ifndef WORKER_AGENT_INVENTORY_H_
#define WORKER_AGENT_INVENTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "assay/v1/config.pb.h"
#include "assay/v1/resources.pb.h"

#include "common/file.h"
#include "worker/agent/accelerators.h"

namespace assay::agent {

// What was found. Texts are empty and numbers 0 where the kernel does not say.
struct Inventory {
  std::string host_name;
  std::string cpu_model;
  int socket_count = 0;
  int core_count = 0;    // physical, of all sockets
  int thread_count = 0;  // hardware threads
  std::string cpu_frequency;
  std::string cpu_caches;
  int numa_node_count = 0;
  int64_t memory_bytes = 0;
  std::string storage_type;
  int64_t storage_bytes = 0;
  std::string networking;
  std::string operating_system;
  std::string kernel;
  std::string libraries;
  std::string framework;
  std::vector<std::string> backends;
  std::vector<Accelerator> accelerators;
};

// Probes /proc, /sys, NVML and the trainer (--backends, --version). A part that cannot be read
// stays empty; the call does not fail. Blocks for the time that the trainer needs to start twice.
Inventory Probe(const v1::WorkerConfig& config);

// The 33 members that the package checker of MLPerf HPC wants (rules specification, section 4.2),
// all strings. The submission's own (submitter, division, status) are left empty for the
// coordinator; number_of_nodes is of this node alone.
std::string SystemDescriptionJson(const Inventory& inventory);

// For placement. `rendezvous_address` is where a rank 0 on this node would listen.
v1::Capabilities CapabilitiesOf(const Inventory& inventory, const v1::WorkerConfig& config,
                                const std::string& rendezvous_address);

}  // namespace assay::agent

#endif  // WORKER_AGENT_INVENTORY_H_
