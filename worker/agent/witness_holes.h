// What a witness of the first touch cannot see, by code. docs/reviewer.md has what each means and
// what helps.

#ifndef WORKER_AGENT_WITNESS_HOLES_H_
#define WORKER_AGENT_WITNESS_HOLES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "worker/agent/file_system.h"
#include "worker/agent/gate_record.h"
#include "worker/agent/run_directory.h"

namespace assay::agent {

// How a witness watches.
struct WatchFacts {
  bool names_processes = true;  // fanotify
  std::string why_folders;      // and not whole file systems; empty: it does those
  FileSystem file_system;       // of the data
  std::string kernel;           // release, "6.1.0-56-amd64"
};
std::vector<WitnessHole> HolesOf(const WatchFacts& facts);

// Nothing held the readers of a run.
WitnessHole NoGate(bool are_copies, absl::string_view why);
// What did has let them in by itself.
WitnessHole GateLost(absl::string_view why);
// What could have been before the reader that was held, all the same.
std::vector<WitnessHole> HolesOf(const GateRecord& record);

// Bytes of a dataset of so many that devices and servers may have moved before: its folders, other
// files.
int64_t AllowedDeviceBytes(int64_t dataset_bytes);

// Times of access of files that were watched: `read` of `looked_at` (access_times.h).
WitnessHole ReadBefore(size_t read, size_t looked_at);
WitnessHole Overflow();
WitnessHole TrainerRoot(absl::string_view found);

}  // namespace assay::agent

#endif  // WORKER_AGENT_WITNESS_HOLES_H_
