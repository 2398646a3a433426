// What a shell offers where a word of some kind is wanted.

#ifndef CLI_COMMAND_COMPLETES_H_
#define CLI_COMMAND_COMPLETES_H_

#include <string>
#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

struct Offer {
  std::vector<std::string> words;
  // The command of `assay` that lists what the coordinator knows, with "-o name"; empty: none.
  std::string ask;
  bool has_files = false;
};

Offer OfferOf(Completes completes);

}  // namespace assay::cli

#endif  // CLI_COMMAND_COMPLETES_H_
