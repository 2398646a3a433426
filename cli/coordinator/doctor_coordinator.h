// What the doctor says of a coordinator and its nodes.

#ifndef CLI_COORDINATOR_DOCTOR_COORDINATOR_H_
#define CLI_COORDINATOR_DOCTOR_COORDINATOR_H_

#include <string>
#include <vector>

#include "common/client/client.h"

namespace assay::cli {

// A line of the doctor's.
struct Check {
  std::string name;
  std::string state;  // ok, warn, fail
  std::string detail;
  std::string remedy = {};
};

// Of the file system of `path`, or of its next parent that there is: a warning with `remedy` where
// less than `free_bytes_min` is free.
Check CheckDisk(const std::string& name, const std::string& path, double free_bytes_min,
                const std::string& remedy);

// The nodes of the coordinator behind `client`, which has said `info` of itself: which are silent,
// their clocks and versions; and its disk, for operators on its host.
void CheckCoordinator(const client::Client& client, const v1::ServerInfo& info,
                      std::vector<Check>* checks);

// One node: whether it answers, is drained, its clock and version against `info`'s, its last
// pre-flight, and orders for its cache that have failed.
void CheckNode(const v1::Worker& worker, const v1::ServerInfo& info, std::vector<Check>* checks);

}  // namespace assay::cli

#endif  // CLI_COORDINATOR_DOCTOR_COORDINATOR_H_
