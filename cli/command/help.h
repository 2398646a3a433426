// Help from the command table: the whole program, a noun, a command; and the topics that belong to
// no command.

#ifndef CLI_COMMAND_HELP_H_
#define CLI_COMMAND_HELP_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "cli/command/command.h"

namespace assay::cli {

// Help for `path`, a command or a noun; "" is the program. `width`: columns of the terminal.
std::string HelpText(absl::string_view path, int width);

struct HelpTopic {
  std::string name;
  std::string summary;
  std::string text;
  bool is_file = false;  // it describes a file: a man page of section 5
};

// Those of files that commands read: beside the table of commands (commands.cc).
std::vector<HelpTopic> FileTopics();

// All, by name.
const std::vector<HelpTopic>& HelpTopics();

// The text of the topic query (query_topic.cc).
std::string QueryTopic();

// "-f, --follow", "--round ROUND": an option as help and man pages write it.
std::string OptionUsage(const Option& option);

// "assay run logs [OPTIONS] ID".
std::string UsageLine(const Command& command);

std::vector<Command> HelpCommands();

}  // namespace assay::cli

#endif  // CLI_COMMAND_HELP_H_
