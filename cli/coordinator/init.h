// assay admin init: keys, certificates and configurations for a new coordinator.

#ifndef CLI_COORDINATOR_INIT_H_
#define CLI_COORDINATOR_INIT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "cli/command/command.h"

namespace assay::cli {

struct InitOptions {
  std::string directory;                // where everything is written
  std::vector<std::string> host_names;  // by which the coordinator is reached
  std::string listen_address;           // 0.0.0.0:7443
  std::string server_address;           // what agents dial: host:7443
  std::string data_directory;
  std::string unix_socket_path;
  // Which may read the files of the coordinator, keys too; empty: whoever writes them alone.
  std::string group;
  std::vector<std::string> round_paths;
  std::string web_url;  // of the site; empty: none
  // Agents as children of the coordinator; 0: an operator starts agents.
  int local_worker_count = 0;
  std::string worker_program;
  absl::Time now;
  absl::Duration lifetime = absl::Hours(24 * 365);
};

// Writes ca.crt, ca.key, server.crt, server.key (keys with mode 0600, or 0640 of the group),
// assayd.textproto and, for agents that an operator starts, worker.textproto. ALREADY_EXISTS if one
// of them is there: keys are never overwritten. NOT_FOUND if there is no such group; then nothing
// is written.
absl::Status InitDirectory(const InitOptions& options);

std::vector<Command> InitCommands();

}  // namespace assay::cli

#endif  // CLI_COORDINATOR_INIT_H_
