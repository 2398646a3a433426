// What the doctor says of a coordinator and its nodes.

#ifndef CLI_COORDINATOR_DOCTOR_COORDINATOR_H_
#define CLI_COORDINATOR_DOCTOR_COORDINATOR_H_

#include <string>
#include <vector>

#include "cli/coordinator/check.h"
#include "cli/terminal/environment.h"
#include "common/client/client.h"

namespace assay::cli {

// Of the file system of `path`, or of its next parent that there is: a warning with `remedy` where
// less than `free_bytes_min` is free.
Check CheckDisk(const std::string& name, const std::string& path, double free_bytes_min,
                const std::string& remedy);

// The nodes of the coordinator behind `client`, which has said `info` of itself: which are silent,
// their clocks, versions and certificates; its own certificate and its site; and its disk and its
// port, for operators on its host.
void CheckCoordinator(const Environment& env, const client::Client& client,
                      const v1::ServerInfo& info, std::vector<Check>* checks);

// One node: whether it answers, is drained, its clock and version against `info`'s, its last
// pre-flight, and orders for its cache that have failed.
void CheckNode(const v1::Worker& worker, const v1::ServerInfo& info, std::vector<Check>* checks);

}  // namespace assay::cli

#endif  // CLI_COORDINATOR_DOCTOR_COORDINATOR_H_
