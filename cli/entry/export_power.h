// The power logs of a package, from what the meters of the nodes showed.

#ifndef CLI_ENTRY_EXPORT_POWER_H_
#define CLI_ENTRY_EXPORT_POWER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "assay/v1/resources.pb.h"

#include "common/client/client.h"

namespace assay::cli {

struct PowerLogs {
  // result_1/node_0.txt and its content, of all nodes of all runs; or none at all.
  std::vector<std::pair<std::string, std::string>> files;
  // Where some nodes have a meter of the whole node: what keeps the entry from having power.
  std::string why_not;
};

// Of the packaged `runs`, each of which has a result file. The official checker wants as many files
// of every run, so it is all or nothing. The coordinator's error if a file cannot be fetched,
// DATA_LOSS if one cannot be read. Blocks.
absl::StatusOr<PowerLogs> ReadPowerLogs(const client::Client& client,
                                        const std::vector<v1::Run>& runs);

}  // namespace assay::cli

#endif  // CLI_ENTRY_EXPORT_POWER_H_
