// The GPUs of this node, through NVIDIA's management library (NVML), loaded if it is there.

#ifndef WORKER_AGENT_ACCELERATORS_H_
#define WORKER_AGENT_ACCELERATORS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace assay::agent {

struct Accelerator {
  std::string model;
  int64_t memory_bytes = 0;
  int clock_mhz = 0;        // highest of the compute units
  int pcie_generation = 0;  // highest that device and slot can do; 0: unknown
  int pcie_lanes = 0;
};

// In the driver's order. Empty without the library, the driver or a device. The GPUs are not used.
std::vector<Accelerator> FindAccelerators();

}  // namespace assay::agent

#endif  // WORKER_AGENT_ACCELERATORS_H_
