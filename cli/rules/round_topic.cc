#include "cli/rules/round_topic.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/rules/round_file.h"

namespace assay::cli {

std::string RoundTopic() {
  std::string text =
      "The round file of a facility\n"
      "TOML: a built-in round with a target, number of runs and rules of your own. 'assay rules "
      "show\n"
      "FILE' reads it, round_paths of assayd.textproto name it.\n";
  for (const std::string& table : rules::RoundFileTables()) {
    absl::StrAppend(
        &text, "\n",
        table == "rule" ? "[[rule]], any number of them" : absl::StrCat("[", table, "], required"),
        "\n");
    for (const rules::RoundFileKey& key : rules::RoundFileKeys())
      if (key.table == table)
        absl::StrAppendFormat(&text, "  %-24s %s\n  %-24s   as %s\n", key.name, key.help, "",
                              key.example);
  }
  absl::StrAppend(&text, "\nHow to choose a target, and a complete file: docs/rounds.md.\n");
  return text;
}

}  // namespace assay::cli
