#include "cli/command/completion.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include "cli/command/completes.h"
#include "cli/command/context.h"
#include "cli/command/help.h"
#include "common/file.h"
#include "common/status.h"

namespace assay::cli {
namespace {

// Words that may stand after `path`: verbs, or what its positionals and options offer.
struct Node {
  std::string path;  // "", "run", "run logs"
  Offer offer;       // verbs, or what its positionals take
  std::vector<std::string> options;
};

// What may be the value of an option. `path`: of the command; "": of every one.
struct ValueNode {
  std::string path;
  const Option* option;
  Offer offer;
};

std::vector<std::string> OptionWords(const Command& command) {
  std::vector<std::string> words;
  for (const std::vector<Option>* options : {&command.options, &GlobalOptions()})
    for (const Option& option : *options)
      words.push_back(absl::StrCat("--", option.name));
  words.emplace_back("--help");
  return words;
}

// All that its positionals take, whichever of them comes next.
Node CommandNode(const Command& command) {
  Node node{.path = command.path, .options = OptionWords(command)};
  for (const Positional& positional : command.positionals) {
    Offer offer = OfferOf(positional.completes);
    node.offer.has_files = node.offer.has_files || offer.has_files;
    if (node.offer.words.empty()) node.offer.words = std::move(offer.words);
    if (node.offer.ask.empty()) node.offer.ask = std::move(offer.ask);
  }
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
                     .offer = {.words = std::vector<std::string>(words.begin(), words.end())},
                     .options = {"--help", "--version"}});
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const Node& a, const Node& b) { return a.path < b.path; });
  return nodes;
}

std::vector<ValueNode> ValueNodes() {
  std::vector<ValueNode> nodes;
  const auto add = [&nodes](const std::string& path, const std::vector<Option>& options) {
    for (const Option& option : options) {
      Offer offer = OfferOf(option.completes);
      if (option.kind == Option::Kind::kChoice) offer.words = option.choices;
      if (offer.words.empty() && offer.ask.empty() && !offer.has_files) continue;
      nodes.push_back({path, &option, std::move(offer)});
    }
  };
  add("", GlobalOptions());
  for (const Command& command : CommandTable())
    add(command.path, command.options);
  return nodes;
}

// What `path` and an option before the cursor mean, for bash and zsh alike: they set fixed, ask,
// files and options.
std::string PathPattern() {
  std::vector<std::string> paths;
  for (const Node& node : Nodes())
    if (!node.path.empty()) paths.push_back(absl::StrCat("'", node.path, "'"));
  return absl::StrJoin(paths, "|\\\n      ");
}

std::string Assignments(const Offer& offer) {
  return absl::StrCat("fixed='", absl::StrJoin(offer.words, " "), "' ask='", offer.ask,
                      "' files=", offer.has_files ? "1" : "");
}

std::string Cases() {
  std::string cases = "  case \"$spoken\" in\n";
  for (const Node& node : Nodes())
    absl::StrAppend(&cases, "    '", node.path, "') ", Assignments(node.offer), " options='",
                    absl::StrJoin(node.options, " "), "';;\n");
  absl::StrAppend(&cases, "  esac\n  case \"$spoken $before\" in\n");
  for (const ValueNode& node : ValueNodes()) {
    const std::string start = node.path.empty() ? "*' " : absl::StrCat("'", node.path, " ");
    absl::StrAppend(&cases, "    ", start, "--", node.option->name, "'");
    if (node.option->letter != 0)
      absl::StrAppend(&cases, "|", start, "-", std::string(1, node.option->letter), "'");
    absl::StrAppend(&cases, ") ", Assignments(node.offer), ";;\n");
  }
  return absl::StrCat(cases, "  esac\n");
}

// bash: one case per path; the path is what the words before the cursor spell. Names that the
// coordinator tells are never expanded, and those that the shell would expand are not offered.
std::string BashScript() {
  return absl::StrCat(
      "# bash completion for assay; load it with: source <(assay completion bash)\n"
      "_assay() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local spoken= word fixed= ask= files= options=\n"
      "  local -a asked\n"
      "  if [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  if [[ $current == = ]]; then current=; fi\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"${spoken:+$spoken }$word\" in\n      ",
      PathPattern(), ") spoken=${spoken:+$spoken }$word;;\n    esac\n  done\n", Cases(),
      "  if [[ $current == -* ]]; then fixed=$options ask= files=; fi\n"
      "  COMPREPLY=($(compgen -W \"$fixed\" -- \"$current\"))\n"
      "  if [[ -n $ask ]]; then\n"
      "    read -ra asked <<< \"$ask\"\n"
      "    while IFS= read -r word; do\n"
      "      [[ $word == \"$current\"* && $word != *[!A-Za-z0-9._-]* ]] && COMPREPLY+=(\"$word\")\n"
      "    done < <(timeout 1 \"$1\" \"${asked[@]}\" -o name -q 2>/dev/null </dev/null)\n"
      "  fi\n"
      "  if [[ -n $files ]]; then\n"
      "    compopt -o filenames 2>/dev/null\n"
      "    COMPREPLY+=($(compgen -f -- \"$current\"))\n"
      "  fi\n"
      "}\n"
      "complete -F _assay assay\n");
}

std::string ZshScript() {
  return absl::StrCat(
      "#compdef assay\n"
      "# zsh completion for assay; put it into a directory of $fpath as _assay\n"
      "_assay() {\n"
      "  local spoken= word fixed= ask= files= options= before=$words[CURRENT-1]\n"
      "  local -a offered\n"
      "  for word in ${words[2,CURRENT-1]}; do\n"
      "    case \"${spoken:+$spoken }$word\" in\n      ",
      PathPattern(), ") spoken=\"${spoken:+$spoken }$word\";;\n    esac\n  done\n", Cases(),
      "  if [[ $PREFIX == -* ]]; then\n"
      "    offered=(${=options})\n"
      "  else\n"
      "    offered=(${=fixed})\n"
      "    if [[ -n $ask ]]; then\n"
      "      offered+=(${(f)\"$(timeout 1 $words[1] ${=ask} -o name -q 2>/dev/null "
      "</dev/null)\"})\n"
      "    fi\n"
      "    if [[ -n $files ]]; then _files; fi\n"
      "  fi\n"
      "  compadd -- $offered\n}\n"
      "if [[ $funcstack[1] == _assay ]]; then _assay \"$@\"; else compdef _assay assay; "
      "fi\n");
}

std::string FishQuote(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

// The argument of fish's -a, or "" where nothing is offered.
std::string FishOffer(const Offer& offer) {
  std::vector<std::string> words = offer.words;
  if (!offer.ask.empty()) words.push_back(absl::StrCat("(__assay_ask ", offer.ask, ")"));
  return words.empty() ? "" : absl::StrCat(" -a ", FishQuote(absl::StrJoin(words, " ")));
}

void AppendFishOption(const std::string& path, const Option& option, const Offer* offer,
                      std::string* script) {
  absl::StrAppend(script, "complete -c assay");
  if (!path.empty()) absl::StrAppend(script, " -n '__assay_in \"", path, "\"'");
  if (option.letter != 0) absl::StrAppend(script, " -s ", std::string(1, option.letter));
  absl::StrAppend(script, " -l ", option.name, " -d ", FishQuote(option.help));
  if (offer != nullptr)
    absl::StrAppend(script, offer->has_files ? " -r -F" : " -x", FishOffer(*offer));
  absl::StrAppend(script, "\n");
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
      "function __assay_ask\n"
      "  timeout 1 assay $argv -o name -q 2>/dev/null </dev/null\n"
      "end\n"
      "complete -c assay -f\n";
  for (const Node& node : Nodes()) {
    const std::string offer = FishOffer(node.offer);
    const char* const where = node.offer.ask.empty() ? "__assay_at" : "__assay_in";
    if (!offer.empty())
      absl::StrAppend(&script, "complete -c assay -n '", where, " \"", node.path, "\"'", offer,
                      "\n");
    if (node.offer.has_files)
      absl::StrAppend(&script, "complete -c assay -n '__assay_in \"", node.path, "\"' -F\n");
  }
  std::set<const Option*> offered;
  for (const ValueNode& node : ValueNodes()) {
    offered.insert(node.option);
    AppendFishOption(node.path, *node.option, &node.offer, &script);
  }
  const auto add = [&](const std::string& path, const std::vector<Option>& options) {
    for (const Option& option : options)
      if (offered.count(&option) == 0) AppendFishOption(path, option, nullptr, &script);
  };
  for (const Command& command : CommandTable())
    add(command.path, command.options);
  add("", GlobalOptions());
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

// Text with its own lines.
std::string AsIs(absl::string_view text) {
  std::string page = ".nf\n";
  for (const absl::string_view line : absl::StrSplit(text, '\n'))
    absl::StrAppend(&page, Roff(line), "\n");
  return absl::StrCat(page, ".fi\n");
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
  for (const HelpTopic& topic : HelpTopics())
    if (!topic.is_file)
      absl::StrAppend(&page, ".SH ", absl::AsciiStrToUpper(topic.name), "\n", AsIs(topic.text));
  return page;
}

std::string FilePage(const HelpTopic& topic) {
  return absl::StrCat(".TH ASSAY\\-", absl::AsciiStrToUpper(topic.name), " 5\n.SH NAME\nassay\\-",
                      topic.name, " \\- ", Roff(topic.summary), "\n.SH DESCRIPTION\n",
                      AsIs(topic.text), ".SH SEE ALSO\n.BR assay (1)\n");
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
  RETURN_IF_ERROR(MakeDirectories(JoinPath(directory, "man1")));
  RETURN_IF_ERROR(MakeDirectories(JoinPath(directory, "man5")));
  RETURN_IF_ERROR(WriteFileAtomic(JoinPath(directory, "man1/assay.1"), ManPage("")));
  for (const Command& command : CommandTable()) {
    const std::string name =
        absl::StrCat("man1/assay-", absl::StrReplaceAll(command.path, {{" ", "-"}}), ".1");
    RETURN_IF_ERROR(WriteFileAtomic(JoinPath(directory, name), ManPage(command.path)));
  }
  size_t file_count = 0;
  for (const HelpTopic& topic : HelpTopics()) {
    if (!topic.is_file) continue;
    ++file_count;
    RETURN_IF_ERROR(WriteFileAtomic(
        JoinPath(directory, absl::StrCat("man5/assay-", topic.name, ".5")), FilePage(topic)));
  }
  context->Note(
      absl::StrCat("wrote ", CommandTable().size() + 1 + file_count, " man pages to ", directory));
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
       .description =
           "Commands are in its man1, files (assay-submission, assay-round) in its man5.",
       .positionals = {{.name = "DIR",
                        .help = "made if it does not exist",
                        .completes = Completes::kDirectory}},
       .examples = {{"assay man ~/.local/share/man",
                     "then: man assay-plan, man 5 assay-submission"}},
       .run = RunMan}};
}

}  // namespace assay::cli
