// Who executes runs, as plain values: see types.h.

#ifndef SERVER_CORE_WORKER_H_
#define SERVER_CORE_WORKER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/core/id.h"
#include "server/core/node_cache.h"
#include "server/core/preflight.h"

namespace assay::core {

enum class WorkerState {
  kAlive,
  kSuspect,   // silent for longer than suspect_after
  kLost,      // silent for longer than lost_after
  kDraining,  // finishes its run, gets no new one
  kGone,      // signed off
};

struct Capabilities {
  std::string host_name;
  int32_t core_count = 0;
  int64_t memory_bytes = 0;
  int32_t accelerator_count = 0;
  std::string accelerator_model;
  std::vector<std::string> backends;  // empty: not told, so any may be tried
  std::string rendezvous_address;     // host:port where rank 0 would listen
  int32_t program_port = 0;           // kept free for rank 0 of an external program; 0: none
  std::string cpu_model;              // empty: not told
  int64_t cache_bytes = 0;            // quota of its node cache; 0: it has none
  bool operator==(const Capabilities&) const = default;
};

// What a worker says about itself; changes only when its agent restarts.
struct WorkerDescription {
  std::string incarnation;
  Capabilities capabilities;
  std::map<std::string, std::string> labels;
  std::string system_description_json;
  std::string version;
  bool operator==(const WorkerDescription&) const = default;
};

struct Worker {
  std::string name;
  WorkerState state = WorkerState::kAlive;
  std::string state_reason;
  int64_t state_since_us = 0;
  bool is_drain_requested = false;
  WorkerDescription description;
  RunId run;               // assigned and not yet given back; none: free
  int64_t generation = 0;  // of that assignment
  // Certificates of an earlier generation are refused; rises by one with each revocation. What was
  // issued before the first one, or by another CA without saying otherwise, is of generation 0.
  int64_t certificate_generation = 0;
  int64_t certificates_revoked_at_us = 0;  // last
  AllocationId allocation;                 // none: not yet told to which it belongs
  bool is_forgotten = false;               // lives in the store alone from the next commit on
  std::optional<Preflight> preflight;      // the last one
  std::vector<CacheOrder> cache_orders;    // the last for each dataset, and its pin; oldest first
  std::map<std::string, std::string> operator_labels;  // in the place of its own of the same name
  bool operator==(const Worker&) const = default;
};

// The machine on which it runs: by the label `node`, which a launcher sets where workers come and
// go on the same machines; else the worker's own name.
const std::string& NodeName(const Worker& worker);

}  // namespace assay::core

#endif  // SERVER_CORE_WORKER_H_
