#include "cli/command/completion.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include "cli/command/context.h"
#include "cli/command/help.h"
#include "common/file.h"
#include "common/status.h"

namespace assay::cli {
namespace {

// Words that may stand after `path`: verbs, or what its positionals and options offer.
struct Node {
  std::string path;                // "", "run", "run logs"
  std::vector<std::string> words;  // verbs, or fixed values of the positional
  std::vector<std::string> options;
  Completes completes = Completes::kNothing;
};

std::vector<std::string> OptionWords(const Command& command) {
  std::vector<std::string> words;
  for (const std::vector<Option>* options : {&command.options, &GlobalOptions()})
    for (const Option& option : *options)
      words.push_back(absl::StrCat("--", option.name));
  words.emplace_back("--help");
  return words;
}

Node CommandNode(const Command& command) {
  Node node{.path = command.path, .options = OptionWords(command)};
  if (command.positionals.empty()) return node;
  node.completes = command.positionals.front().completes;
  if (node.completes == Completes::kShell) node.words = {"bash", "zsh", "fish"};
  if (node.completes == Completes::kTopic)
    for (const HelpTopic& topic : HelpTopics())
      node.words.push_back(topic.name);
  return node;
}

// Every noun with its verbs and every command, sorted by path.
std::vector<Node> Nodes() {
  std::vector<Node> nodes;
  std::set<std::string> nouns = {""};
  for (const Command& command : CommandTable()) {
    for (size_t blank = command.path.find(' '); blank != std::string::npos;
         blank = command.path.find(' ', blank + 1))
      nouns.insert(command.path.substr(0, blank));
    nodes.push_back(CommandNode(command));
  }
  for (const std::string& noun : nouns) {
    const std::string start = noun.empty() ? "" : noun + " ";
    std::set<std::string> words;
    for (const Command& command : CommandTable())
      if (absl::StartsWith(command.path, start)) {
        const std::string rest = command.path.substr(start.size());
        words.insert(rest.substr(0, rest.find(' ')));
      }
    nodes.push_back({.path = noun,
                     .words = std::vector<std::string>(words.begin(), words.end()),
                     .options = {"--help", "--version"}});
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const Node& a, const Node& b) { return a.path < b.path; });
  return nodes;
}

bool OffersFiles(const Node& node) {
  return node.completes == Completes::kFile || node.completes == Completes::kDirectory;
}

// bash: one case per path; the path is what the words before the cursor spell.
std::string BashScript() {
  std::string script =
      "# bash completion for assay; load it with: source <(assay completion bash)\n"
      "_assay() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} path= word words= options= files=\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"${path:+$path }$word\" in\n";
  std::vector<std::string> paths;
  for (const Node& node : Nodes())
    if (!node.path.empty()) paths.push_back(absl::StrCat("'", node.path, "'"));
  absl::StrAppend(&script, "      ", absl::StrJoin(paths, "|\\\n      "),
                  ") path=${path:+$path }$word;;\n    esac\n  done\n  case \"$path\" in\n");
  for (const Node& node : Nodes()) {
    absl::StrAppend(&script, "    '", node.path, "') words='", absl::StrJoin(node.words, " "),
                    "' options='", absl::StrJoin(node.options, " "), "'",
                    OffersFiles(node) ? " files=1" : "", ";;\n");
  }
  absl::StrAppend(&script,
                  "  esac\n"
                  "  if [[ $current == -* ]]; then words=$options files=; fi\n"
                  "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
                  "  if [[ -n $files ]]; then\n"
                  "    compopt -o filenames 2>/dev/null\n"
                  "    COMPREPLY+=($(compgen -f -- \"$current\"))\n"
                  "  fi\n"
                  "}\n"
                  "complete -F _assay assay\n");
  return script;
}

std::string ZshScript() {
  std::string script =
      "#compdef assay\n"
      "# zsh completion for assay; put it into a directory of $fpath as _assay\n"
      "_assay() {\n"
      "  local path= word\n"
      "  local -a offered\n"
      "  for word in ${words[2,CURRENT-1]}; do\n"
      "    case \"${path:+$path }$word\" in\n";
  std::vector<std::string> paths;
  for (const Node& node : Nodes())
    if (!node.path.empty()) paths.push_back(absl::StrCat("'", node.path, "'"));
  absl::StrAppend(&script, "      ", absl::StrJoin(paths, "|\\\n      "),
                  ") path=\"${path:+$path }$word\";;\n    esac\n  done\n  case \"$path\" in\n");
  for (const Node& node : Nodes()) {
    absl::StrAppend(&script, "    '", node.path, "')\n      if [[ $PREFIX == -* ]]; then offered=(",
                    absl::StrJoin(node.options, " "), ")\n      else offered=(",
                    absl::StrJoin(node.words, " "), ")", OffersFiles(node) ? "; _files" : "",
                    "; fi;;\n");
  }
  absl::StrAppend(
      &script, "  esac\n  compadd -- $offered\n}\n",
      "if [[ $funcstack[1] == _assay ]]; then _assay \"$@\"; else compdef _assay assay; "
      "fi\n");
  return script;
}

std::string FishQuote(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string FishScript() {
  std::string script =
      "# fish completion for assay; put it into ~/.config/fish/completions/assay.fish\n"
      "function __assay_at\n"
      "  set -l spoken (commandline -opc | string match --invert -- '-*')[2..-1]\n"
      "  test (string join ' ' -- $spoken) = \"$argv[1]\"\n"
      "end\n"
      "function __assay_in\n"
      "  set -l spoken (commandline -opc | string match --invert -- '-*')[2..-1]\n"
      "  string match --quiet -- \"$argv[1]*\" (string join ' ' -- $spoken)\n"
      "end\n"
      "complete -c assay -f\n";
  for (const Node& node : Nodes()) {
    if (!node.words.empty())
      absl::StrAppend(&script, "complete -c assay -n '__assay_at \"", node.path, "\"' -a '",
                      absl::StrJoin(node.words, " "), "'\n");
    if (OffersFiles(node))
      absl::StrAppend(&script, "complete -c assay -n '__assay_in \"", node.path, "\"' -F\n");
  }
  for (const Command& command : CommandTable())
    for (const Option& option : command.options)
      absl::StrAppend(&script, "complete -c assay -n '__assay_in \"", command.path, "\"' -l ",
                      option.name, " -d ", FishQuote(option.help), "\n");
  for (const Option& option : GlobalOptions())
    absl::StrAppend(&script, "complete -c assay -l ", option.name, " -d ", FishQuote(option.help),
                    "\n");
  return script;
}

// ------------------------------------------------------------------------------------- man pages

std::string Roff(absl::string_view text) {
  std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"-", "\\-"}});
  if (absl::StartsWith(escaped, ".") || absl::StartsWith(escaped, "'")) escaped.insert(0, "\\&");
  return escaped;
}

std::string Definition(absl::string_view term, absl::string_view text) {
  return absl::StrCat(".TP\n.B ", Roff(term), "\n", Roff(text), "\n");
}

std::string Examples(const std::vector<Example>& examples) {
  std::string text = ".SH EXAMPLES\n";
  for (const Example& example : examples)
    absl::StrAppend(&text, ".TP\n.B ", Roff(example.command), "\n",
                    example.explanation.empty() ? "\\&" : Roff(example.explanation), "\n");
  return text;
}

std::string ExitStatusSection() {
  std::string text = ".SH EXIT STATUS\n";
  for (const ExitStatusRow& row : ExitStatusTable())
    absl::StrAppend(&text, Definition(absl::StrCat(static_cast<int>(row.status)), row.meaning));
  return text;
}

std::string ProgramPage() {
  std::string page = absl::StrCat(
      ".TH ASSAY 1\n.SH NAME\nassay \\- run, judge and score MLPerf HPC benchmarks\n"
      ".SH SYNOPSIS\n.B assay\nCOMMAND [OPTIONS] [ARGUMENTS]\n.SH COMMANDS\n");
  for (const Command& command : CommandTable())
    absl::StrAppend(&page, Definition(command.path, command.summary));
  absl::StrAppend(&page, ".SH OPTIONS\n");
  for (const Option& option : GlobalOptions())
    absl::StrAppend(&page, Definition(OptionUsage(option), option.help));
  for (const HelpTopic& topic : HelpTopics()) {
    absl::StrAppend(&page, ".SH ", absl::AsciiStrToUpper(topic.name), "\n.nf\n");
    for (const absl::string_view line : absl::StrSplit(topic.text, '\n'))
      absl::StrAppend(&page, Roff(line), "\n");
    absl::StrAppend(&page, ".fi\n");
  }
  return page;
}

std::string CommandPage(const Command& command) {
  const std::string dashed = absl::StrReplaceAll(command.path, {{" ", "-"}});
  std::string page = absl::StrCat(
      ".TH ASSAY\\-", Roff(absl::AsciiStrToUpper(dashed)), " 1\n.SH NAME\nassay\\-", Roff(dashed),
      " \\- ", Roff(command.summary), "\n.SH SYNOPSIS\n.B ", Roff(UsageLine(command)), "\n");
  if (!command.description.empty())
    absl::StrAppend(&page, ".SH DESCRIPTION\n", Roff(command.description), "\n");
  if (!command.positionals.empty()) absl::StrAppend(&page, ".SH ARGUMENTS\n");
  for (const Positional& positional : command.positionals)
    absl::StrAppend(&page, Definition(positional.name, positional.help));
  absl::StrAppend(&page, ".SH OPTIONS\n");
  for (const std::vector<Option>* options : {&command.options, &GlobalOptions()})
    for (const Option& option : *options)
      absl::StrAppend(&page, Definition(OptionUsage(option), option.help));
  return absl::StrCat(page, Examples(command.examples), ExitStatusSection(),
                      ".SH SEE ALSO\n.BR assay (1)\n");
}

absl::StatusOr<ExitStatus> RunCompletion(Context* context, const Arguments& arguments) {
  const std::string script = CompletionScript(arguments.Get("SHELL"));
  if (script.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", arguments.Get("SHELL"), "' is no shell known here: bash, zsh or fish"));
  }
  context->out() << script;
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunMan(Context* context, const Arguments& arguments) {
  const std::string directory = context->env().AbsolutePath(arguments.Get("DIR"));
  RETURN_IF_ERROR(MakeDirectories(directory));
  RETURN_IF_ERROR(WriteFileAtomic(JoinPath(directory, "assay.1"), ManPage("")));
  for (const Command& command : CommandTable()) {
    const std::string name =
        absl::StrCat("assay-", absl::StrReplaceAll(command.path, {{" ", "-"}}), ".1");
    RETURN_IF_ERROR(WriteFileAtomic(JoinPath(directory, name), ManPage(command.path)));
  }
  context->Note(absl::StrCat("wrote ", CommandTable().size() + 1, " man pages to ", directory));
  return ExitStatus::kDone;
}

}  // namespace

std::string CompletionScript(absl::string_view shell) {
  if (shell == "bash") return BashScript();
  if (shell == "zsh") return ZshScript();
  if (shell == "fish") return FishScript();
  return "";
}

std::string ManPage(absl::string_view path) {
  const Command* command = path.empty() ? nullptr : FindCommand(path);
  return command == nullptr ? ProgramPage() : CommandPage(*command);
}

std::vector<Command> CompletionCommands() {
  return {
      {.path = "completion",
       .summary = "print the completion script of a shell",
       .positionals = {{.name = "SHELL",
                        .help = "bash, zsh or fish",
                        .completes = Completes::kShell}},
       .examples = {{"source <(assay completion bash)", "for this shell"},
                    {"assay completion fish > ~/.config/fish/completions/assay.fish", "for good"}},
       .run = RunCompletion},
      {.path = "man",
       .summary = "write the man pages into a directory",
       .positionals = {{.name = "DIR",
                        .help = "made if it does not exist",
                        .completes = Completes::kDirectory}},
       .examples = {{"assay man ~/.local/share/man/man1", ""}},
       .run = RunMan}};
}

}  // namespace assay::cli
