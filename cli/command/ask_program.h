// What another program says.

#ifndef CLI_COMMAND_ASK_PROGRAM_H_
#define CLI_COMMAND_ASK_PROGRAM_H_

#include <optional>
#include <string>
#include <vector>

namespace assay::cli {

// What the program writes, which is found by PATH if its name has no slash, with `environment`
// ("NAME=value") added to this process's. nullopt if it cannot be started, fails, or does not end
// within a minute.
std::optional<std::string> AskProgram(std::vector<std::string> argv,
                                      std::vector<std::string> environment);

}  // namespace assay::cli

#endif  // CLI_COMMAND_ASK_PROGRAM_H_
