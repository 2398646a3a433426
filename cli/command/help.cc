#include "cli/command/help.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "cli/command/context.h"
#include "common/client/suggest.h"

namespace assay::cli {
namespace {

struct Entry {
  std::string left;
  std::string right;
};

// `text` broken at blanks into lines of at most `width`; every line after the first is indented.
std::string Wrap(absl::string_view text, int width, int indent) {
  std::string result;
  int column = 0;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const int length = DisplayWidth(word);
    if (column > 0 && column + 1 + length > width) {
      absl::StrAppend(&result, "\n", std::string(static_cast<size_t>(indent), ' '));
      column = 0;
    }
    absl::StrAppend(&result, column > 0 ? " " : "", word);
    column += length + (column > 0 ? 1 : 0);
  }
  return result;
}

std::string Entries(const std::vector<Entry>& entries, int width) {
  constexpr int kIndent = 2;
  constexpr int kGap = 2;
  constexpr int kLeftMax = 28;
  int left = 0;
  for (const Entry& entry : entries)
    if (DisplayWidth(entry.left) <= kLeftMax) left = std::max(left, DisplayWidth(entry.left));
  const int start = kIndent + left + kGap;
  std::string result;
  for (const Entry& entry : entries) {
    absl::StrAppend(&result, std::string(kIndent, ' '), entry.left);
    const int used = DisplayWidth(entry.left);
    if (used > left) {
      absl::StrAppend(&result, "\n", std::string(static_cast<size_t>(start), ' '));
    } else {
      absl::StrAppend(&result, std::string(static_cast<size_t>(start - kIndent - used), ' '));
    }
    absl::StrAppend(&result, Wrap(entry.right, std::max(width - start, 20), start), "\n");
  }
  return result;
}

std::string ExampleLines(const std::vector<Example>& examples, int width) {
  std::string text = "Examples\n";
  for (const Example& example : examples) {
    absl::StrAppend(&text, "  $ ", example.command, "\n");
    if (!example.explanation.empty())
      absl::StrAppend(&text, "      ", Wrap(example.explanation, width - 6, 6), "\n");
  }
  return text;
}

bool IsShortcut(const Command& command) {
  return !absl::StrContains(command.path, ' ');
}

const std::vector<std::string>& Nouns() {
  static const auto* const kNouns = [] {
    auto* const nouns = new std::vector<std::string>;
    for (const Command& command : CommandTable()) {
      const std::string noun = command.path.substr(0, command.path.find(' '));
      if (!IsShortcut(command) && std::find(nouns->begin(), nouns->end(), noun) == nouns->end())
        nouns->push_back(noun);
    }
    return nouns;
  }();
  return *kNouns;
}

std::string VerbsOf(absl::string_view noun) {
  std::string verbs;
  for (const Command& command : CommandTable()) {
    if (!absl::StartsWith(command.path, absl::StrCat(noun, " "))) continue;
    absl::StrAppend(&verbs, verbs.empty() ? "" : ", ", command.path.substr(noun.size() + 1));
  }
  return verbs;
}

std::string ProgramHelp(int width) {
  std::string text = absl::StrCat(
      "assay - run, judge and score MLPerf HPC benchmarks\n\n",
      ExampleLines({{"assay dev", "start a private coordinator with two workers"},
                    {"assay quickstart", "run a small CosmoFlow from data to score"},
                    {"assay submit cosmoflow.toml --wait", "submit an entry and follow it"},
                    {"assay score hpc_results_v1.0/ORG --round v1.0",
                     "judge and score published logs offline"}},
                   width),
      "\nDaily commands\n");
  std::vector<Entry> daily;
  for (const Command& command : CommandTable())
    if (IsShortcut(command)) daily.push_back({command.path, command.summary});
  absl::StrAppend(&text, Entries(daily, width), "\nNouns (assay NOUN VERB)\n");
  std::vector<Entry> nouns;
  for (const std::string& noun : Nouns())
    nouns.push_back({noun, absl::StrCat(NounSummary(noun), ": ", VerbsOf(noun))});
  absl::StrAppend(&text, Entries(nouns, width),
                  "\nConcepts that span commands (assay help TOPIC)\n");
  std::vector<Entry> topics;
  for (const HelpTopic& topic : HelpTopics())
    topics.push_back({topic.name, topic.summary});
  absl::StrAppend(&text, Entries(topics, width),
                  "\n'assay COMMAND --help' explains a command, with examples.\n");
  return text;
}

std::string NounHelp(absl::string_view noun, int width) {
  std::string text = absl::StrCat("assay ", noun, " - ", NounSummary(noun), "\n\n");
  std::vector<Entry> verbs;
  std::vector<Example> examples;
  for (const Command& command : CommandTable()) {
    if (!absl::StartsWith(command.path, absl::StrCat(noun, " "))) continue;
    verbs.push_back({command.path.substr(noun.size() + 1), command.summary});
    if (!command.examples.empty()) examples.push_back(command.examples.front());
  }
  return absl::StrCat(text, ExampleLines(examples, width), "\nCommands\n", Entries(verbs, width));
}

std::vector<Entry> OptionEntries(const std::vector<Option>& options) {
  std::vector<Entry> entries;
  for (const Option& option : options) {
    std::string help = option.help;
    if (!option.fallback.empty()) absl::StrAppend(&help, " (default: ", option.fallback, ")");
    entries.push_back({OptionUsage(option), help});
  }
  return entries;
}

std::string CommandHelp(const Command& command, int width) {
  std::string text =
      absl::StrCat("assay ", command.path, " - ", command.summary, "\n\n",
                   ExampleLines(command.examples, width), "\nUsage\n  ", UsageLine(command), "\n");
  if (!command.description.empty())
    absl::StrAppend(&text, "\n", Wrap(command.description, width, 0), "\n");
  if (!command.positionals.empty()) {
    std::vector<Entry> entries;
    for (const Positional& positional : command.positionals)
      entries.push_back({positional.name, positional.help});
    absl::StrAppend(&text, "\nArguments\n", Entries(entries, width));
  }
  if (!command.options.empty())
    absl::StrAppend(&text, "\nOptions\n", Entries(OptionEntries(command.options), width));
  absl::StrAppend(&text, "\nOptions of every command\n",
                  Entries(OptionEntries(GlobalOptions()), width));
  return text;
}

absl::StatusOr<ExitStatus> RunHelp(Context* context, const Arguments& arguments) {
  const std::vector<std::string> words = arguments.All("TOPIC");
  std::string path;
  for (const std::string& word : words)
    absl::StrAppend(&path, path.empty() ? "" : " ", word);
  std::vector<std::string> known;
  for (const HelpTopic& topic : HelpTopics()) {
    known.push_back(topic.name);
    if (topic.name != path) continue;
    context->out() << topic.text;
    return ExitStatus::kDone;
  }
  known.insert(known.end(), Nouns().begin(), Nouns().end());
  for (const Command& command : CommandTable())
    known.push_back(command.path);
  if (!path.empty() && std::find(known.begin(), known.end(), path) == known.end() &&
      NounSummary(path).empty()) {
    return absl::NotFoundError(absl::StrCat("there is no help on '", path, "'",
                                            client::DidYouMean(path, known),
                                            "; 'assay help' lists commands and topics"));
  }
  context->out() << HelpText(path, context->env().width);
  return ExitStatus::kDone;
}

}  // namespace

std::string OptionUsage(const Option& option) {
  std::string text;
  if (option.letter != 0) text = absl::StrCat("-", std::string(1, option.letter), ", ");
  absl::StrAppend(&text, "--", option.name);
  if (option.kind == Option::Kind::kOptionalText)
    return absl::StrCat(text, "[=", option.value, "]");
  if (option.kind != Option::Kind::kFlag) absl::StrAppend(&text, " ", option.value);
  return text;
}

std::string UsageLine(const Command& command) {
  std::string line = absl::StrCat("assay ", command.path);
  for (const Option& option : command.options)
    if (option.is_required) absl::StrAppend(&line, " --", option.name, " ", option.value);
  absl::StrAppend(&line, " [OPTIONS]");
  for (const Positional& positional : command.positionals) {
    const std::string name = absl::StrCat(positional.name, positional.is_repeated ? "..." : "");
    absl::StrAppend(&line, " ", positional.is_required ? name : absl::StrCat("[", name, "]"));
  }
  return line;
}

std::string HelpText(absl::string_view path, int width) {
  constexpr int kReadableWidthMax = 100;
  const int columns = std::min(width, kReadableWidthMax);
  if (path.empty()) return ProgramHelp(columns);
  const Command* command = FindCommand(path);
  return command == nullptr ? NounHelp(path, columns) : CommandHelp(*command, columns);
}

std::vector<Command> HelpCommands() {
  return {{.path = "help",
           .summary = "explain a command or a topic",
           .positionals = {{.name = "TOPIC",
                            .help = "a command, or environment, exit-codes, formatting, ids, "
                                    "rules, timing",
                            .is_required = false,
                            .is_repeated = true,
                            .completes = Completes::kTopic}},
           .examples = {{"assay help exit-codes", "what scripts may rely on"},
                        {"assay help run logs", "the same as assay run logs --help"}},
           .run = RunHelp}};
}

}  // namespace assay::cli
