// What a witness of the first touch cannot see, by code. docs/reviewer.md has what each means and
// what helps.

#ifndef WORKER_AGENT_WITNESS_HOLES_H_
#define WORKER_AGENT_WITNESS_HOLES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "worker/agent/file_system.h"
#include "worker/agent/run_directory.h"

namespace assay::agent {

// How a witness watches.
struct WatchFacts {
  bool is_read_only = false;    // opening a file is no touch
  bool names_processes = true;  // fanotify
  std::string why_folders;      // and not whole file systems; empty: it does those
  FileSystem file_system;       // of the data
  std::string kernel;           // release, "6.1.0-56-amd64"
};
std::vector<WitnessHole> HolesOf(const WatchFacts& facts);

WitnessHole Overflow();
WitnessHole TrainerRoot(absl::string_view found);

}  // namespace assay::agent

#endif  // WORKER_AGENT_WITNESS_HOLES_H_
