// assay import: published history into the coordinator's store.

#ifndef CLI_ENTRY_IMPORT_H_
#define CLI_ENTRY_IMPORT_H_

#include <string>
#include <vector>

#include "assay/v1/submission_service.pb.h"

#include "cli/command/command.h"
#include "common/package/results_tree.h"

namespace assay::cli {

// An entry as it is sent: its header, then each run with its log in pieces.
struct Import {
  struct Run {
    v1::ImportedRun header;
    std::string log;
  };
  v1::ImportHeader header;
  std::vector<Run> runs;
};

// What the coordinator is told of a judged folder. `round`: the rule set's name.
Import ImportFor(package::JudgedFolder judged, const std::string& round);

std::vector<Command> ImportCommands();

}  // namespace assay::cli

#endif  // CLI_ENTRY_IMPORT_H_
