#include "cli/app.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "cli/command/command.h"
#include "cli/command/context.h"
#include "cli/command/help.h"
#include "cli/command/settings.h"
#include "cli/terminal/safe_stream.h"
#include "cli/terminal/template.h"
#include "common/client/suggest.h"
#include "common/secret.h"
#include "common/status.h"

namespace assay::cli {
namespace {

// The command line cut in two: which command, and the words for its parser.
struct Resolved {
  const Command* command = nullptr;  // null: help was asked for
  std::string help_for;              // path of a noun or command; "": the whole program
  std::vector<std::string> words;
};

bool IsOption(absl::string_view word) {
  return word.size() > 1 && word[0] == '-';
}

// True if `word` is a global option whose value is the next word.
bool TakesNextWord(const std::string& word) {
  if (absl::StrContains(word, '=')) return false;
  for (const Option& option : GlobalOptions()) {
    const bool has_value =
        option.kind != Option::Kind::kFlag && option.kind != Option::Kind::kOptionalText;
    const bool is_named =
        word == absl::StrCat("--", option.name) ||
        (option.letter != 0 && word == absl::StrCat("-", std::string(1, option.letter)));
    if (is_named) return has_value;
  }
  return false;
}

// What may follow `prefix` ("" or "admin" or "admin token").
std::vector<std::string> NextWords(const std::string& prefix) {
  std::vector<std::string> words;
  const std::string start = prefix.empty() ? "" : prefix + " ";
  for (const Command& command : CommandTable()) {
    if (!absl::StartsWith(command.path, start)) continue;
    const std::string rest = command.path.substr(start.size());
    const std::string word = rest.substr(0, rest.find(' '));
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
  return words;
}

// Of a verb without its noun: where it belongs.
std::string NounsWith(const std::string& verb) {
  std::vector<std::string> nouns;
  for (const std::string& noun : NextWords(""))
    if (FindCommand(absl::StrCat(noun, " ", verb)) != nullptr) nouns.push_back(noun);
  if (nouns.empty()) return "";
  return absl::StrCat("; it follows a noun, as in 'assay ", nouns.front(), " ", verb,
                      "': ", absl::StrJoin(nouns, ", "));
}

absl::Status UnknownWord(const std::string& prefix, const std::string& word) {
  const std::vector<std::string> known = NextWords(prefix);
  std::string hint = client::DidYouMean(word, known);
  if (prefix.empty() && hint.empty()) hint = NounsWith(word);
  if (prefix.empty() && hint.empty()) hint = "; 'assay --help' lists the commands";
  if (!prefix.empty() && hint.empty())
    hint = absl::StrCat("; it is one of ", absl::StrJoin(known, ", "));
  return absl::InvalidArgumentError(
      absl::StrCat("'", word, "' is no command",
                   prefix.empty() ? "" : absl::StrCat(" of '", prefix, "'"), hint));
}

// True if somebody asks for help: -h or --help before any "--".
bool WantsHelp(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "-h" || word == "--help") return true;
  }
  return false;
}

absl::StatusOr<Resolved> Resolve(const std::vector<std::string>& words) {
  Resolved resolved;
  std::string path;
  size_t next = 0;
  while (next < words.size()) {
    if (IsOption(words[next])) {
      if (words[next] == "--version") {
        resolved.command = FindCommand("version");
        return resolved;
      }
      resolved.words.push_back(words[next]);
      if (TakesNextWord(words[next]) && next + 1 < words.size())
        resolved.words.push_back(words[++next]);
      ++next;
      continue;
    }
    const std::string longer = path.empty() ? words[next] : absl::StrCat(path, " ", words[next]);
    if (NextWords(path).empty()) break;
    const Command* found = FindCommand(longer);
    if (found == nullptr && NextWords(longer).empty()) return UnknownWord(path, words[next]);
    path = longer;
    ++next;
    if (found != nullptr && NextWords(longer).empty()) break;
  }
  resolved.words.insert(resolved.words.end(), words.begin() + static_cast<ptrdiff_t>(next),
                        words.end());
  resolved.help_for = path;
  if (!WantsHelp(words)) resolved.command = FindCommand(path);
  return resolved;
}

// The arguments of a process are open to every user of its host (docs/adr/0151), so this one is not
// even looked at.
absl::Status RefuseTokens(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") break;
    if (word != "--token" && !absl::StartsWith(word, "--token=")) continue;
    return absl::InvalidArgumentError(
        "--token: every user of this host can read a command line; give --token-file FILE (-: "
        "the standard input) or set ASSAY_TOKEN, and revoke the token if others were logged in");
  }
  return absl::OkStatus();
}

// Binds one table row to CLI11, which does the splitting and the type checks.
class Parser {
 public:
  explicit Parser(const Command& command) : command_(command), app_(command.summary) {
    app_.set_help_flag();
    for (Option option : GlobalOptions()) {
      if (HasLetter(command, option.letter)) option.letter = 0;  // the command's own wins
      AddOption(option);
    }
    for (const Option& option : command.options)
      AddOption(option);
    for (const Positional& positional : command.positionals)
      AddPositional(positional);
  }

  absl::StatusOr<Arguments> Parse(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());  // as CLI11 wants it
    try {
      app_.parse(words);
    } catch (const CLI::ExtrasError&) {
      return Unexpected();
    } catch (const CLI::ArgumentMismatch& error) {
      const std::string what = error.what();  // "--timeout: 1 required DURATION missing"
      return absl::InvalidArgumentError(absl::StrCat(what.substr(0, what.find(':')),
                                                     " needs a value; see 'assay ", command_.path,
                                                     " --help'"));
    } catch (const CLI::ParseError& error) {
      return absl::InvalidArgumentError(
          absl::StrCat(error.what(), "; see 'assay ", command_.path, " --help'"));
    }
    return Collect();
  }

 private:
  struct Bound {
    std::string name;
    std::string fallback;
    CLI::Option* option;
    std::vector<std::string> values;
  };

  static bool HasLetter(const Command& command, char letter) {
    return std::any_of(command.options.begin(), command.options.end(),
                       [&](const Option& option) { return option.letter == letter; });
  }

  void AddOption(const Option& option) {
    Bound& bound = *bound_.emplace_back(std::make_unique<Bound>());
    bound.name = option.name;
    bound.fallback = option.fallback;
    std::string flags = absl::StrCat("--", option.name);
    if (option.letter != 0) flags = absl::StrCat("-", std::string(1, option.letter), ",", flags);
    if (option.kind == Option::Kind::kFlag) {
      bound.option = app_.add_flag(flags);
      return;
    }
    if (option.kind == Option::Kind::kOptionalText) {
      bound.option = app_.add_flag(flags + "{}", bound.values);
      return;
    }
    bound.option = app_.add_option(flags, bound.values, option.help)
                       ->type_size(1)
                       ->expected(1)
                       ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                       ->allow_extra_args(false);
    if (option.kind == Option::Kind::kChoice) bound.option->check(CLI::IsMember(option.choices));
    if (option.kind == Option::Kind::kInteger)
      bound.option->check(IntegerCheck(option.min, option.max));
    if (option.kind == Option::Kind::kDuration) bound.option->check(DurationCheck());
    if (option.is_required) bound.option->required();
  }

  void AddPositional(const Positional& positional) {
    Bound& bound = *bound_.emplace_back(std::make_unique<Bound>());
    bound.name = positional.name;
    bound.option = app_.add_option(positional.name, bound.values, positional.help);
    bound.option->expected(1, positional.is_repeated ? 1 << 20 : 1);
    bound.option->allow_extra_args(positional.is_repeated);
    if (positional.is_required) bound.option->required();
  }

  static CLI::Validator IntegerCheck(int64_t min, int64_t max) {
    return CLI::Validator(
        [min, max](std::string& text) -> std::string {
          int64_t value = 0;
          if (!absl::SimpleAtoi(text, &value))
            return absl::StrCat("'", text, "' is no whole number; ", min, " to ", max,
                                " are taken");
          if (value >= min && value <= max) return "";
          return absl::StrCat(text, " is not in range; ", min, " to ", max, " are taken");
        },
        "INTEGER");
  }

  static CLI::Validator DurationCheck() {
    return CLI::Validator(
        [](std::string& text) -> std::string {
          const auto duration = ParseDurationText(text);
          return duration.ok() ? "" : std::string(duration.status().message());
        },
        "DURATION");
  }

  absl::Status Unexpected() const {
    const std::vector<std::string> extras = app_.remaining();
    const auto option = std::find_if(extras.begin(), extras.end(),
                                     [](const std::string& word) { return IsOption(word); });
    if (option == extras.end()) {
      return absl::InvalidArgumentError(absl::StrCat("'", extras.empty() ? "" : extras.front(),
                                                     "' is one argument too many; see 'assay ",
                                                     command_.path, " --help'"));
    }
    const std::string name = option->substr(0, option->find('='));
    std::vector<std::string> known;
    for (const auto& bound : bound_)
      if (bound->option->nonpositional()) known.push_back(absl::StrCat("--", bound->name));
    std::string hint = client::DidYouMean(name, known);
    if (hint.empty()) hint = absl::StrCat("; see 'assay ", command_.path, " --help'");
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is no option of 'assay ", command_.path, "'", hint));
  }

  Arguments Collect() const {
    Arguments arguments;
    for (const auto& bound : bound_) {
      if (bound->option->count() > 0 && bound->values.empty()) arguments.Add(bound->name, "");
      for (const std::string& value : bound->values)
        arguments.Add(bound->name, value);
      if (bound->option->count() == 0 && !bound->fallback.empty())
        arguments.Add(bound->name, bound->fallback);
    }
    return arguments;
  }

  const Command& command_;
  CLI::App app_;
  std::vector<std::unique_ptr<Bound>> bound_;
};

// "json", or "tpl=" and a template.
absl::Status ParseOutput(const client::Setting& setting, PrintOptions* print) {
  absl::string_view text = setting.value;
  if (absl::ConsumePrefix(&text, "tpl=")) {
    print->output = PrintOptions::Output::kTemplate;
    print->text_template = std::string(text);
    return Template::Parse(text).status();
  }
  const std::optional<PrintOptions::Output> output = FindOutput(setting.value);
  if (output.has_value()) {
    print->output = *output;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(setting.origin, ": '", setting.value, "' is no output format; it is one of ",
                   absl::StrJoin(OutputNames(), ", "), ", tpl=TEMPLATE",
                   client::DidYouMean(setting.value, OutputNames())));
}

// NO_COLOR and CLICOLOR_FORCE as at no-color.org and bixense.com/clicolors; the flag wins.
absl::StatusOr<bool> WantsColor(const Environment& env, const client::Setting& setting) {
  if (setting.value == "always") return true;
  if (setting.value == "never") return false;
  if (setting.value != "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat(setting.origin, ": '", setting.value, "' is not one of auto, always, never"));
  }
  if (!env.Variable("NO_COLOR").empty()) return false;
  const std::string force = env.Variable("CLICOLOR_FORCE");
  if (!force.empty() && force != "0") return true;
  return env.is_out_tty && env.Variable("TERM") != "dumb" && env.Variable("CLICOLOR") != "0";
}

absl::StatusOr<ExitStatus> RunCommand(const Command& command, const std::vector<std::string>& words,
                                      Environment* env) {
  ASSIGN_OR_RETURN(const Arguments arguments, Parser(command).Parse(words));
  std::map<std::string, std::string> flags;
  for (const client::SettingKey& key : client::SettingKeys()) {
    const std::string flag = key.name == std::string("token_file") ? "token-file" : key.name;
    if (arguments.Has(flag)) flags[key.name] = arguments.Get(flag);
  }
  ASSIGN_OR_RETURN(client::Config config, LoadConfig(*env, flags));
  PrintOptions print;
  RETURN_IF_ERROR(ParseOutput(*config.Find("output"), &print));
  ASSIGN_OR_RETURN(print.has_color, WantsColor(*env, *config.Find("color")));
  print.has_header = !arguments.Has("no-header");
  if (arguments.Has("json")) {
    if (!IsJsonShape(print.output)) print.output = PrintOptions::Output::kJson;
    print.json_fields = arguments.Get("json");
  }
  if (arguments.Has("jq")) {
    if (!IsJsonShape(print.output)) print.output = PrintOptions::Output::kJson;
    if (print.output == PrintOptions::Output::kTemplate)
      return absl::InvalidArgumentError("--jq filters JSON, and -o tpl=TEMPLATE prints none");
    print.jq = arguments.Get("jq");
  }
  Context context(env, std::move(config), print, arguments.Has("quiet"));
  const MonoTime start = env->clock->Mono();
  absl::StatusOr<ExitStatus> result = command.run(&context, arguments);
  if (arguments.Has("verbose")) {
    *env->err << "assay: " << command.path << " took "
              << absl::FormatDuration(
                     absl::Trunc(env->clock->Mono() - start, absl::Milliseconds(1)))
              << "\n";
  }
  return result;
}

void PrintError(const Environment& env, const absl::Status& status) {
  *env.out << std::flush;
  *env.err << "assay: error: " << std::string(status.message()) << "\n";
}

}  // namespace

ExitStatus RunCli(const std::vector<std::string>& words, Environment* surroundings) {
  Environment environment_of_command = *surroundings;
  Environment* const environment = &environment_of_command;
  environment->style_key = MakeUuid();
  SafeStream out(surroundings->out, environment->style_key);
  SafeStream err(surroundings->err, environment->style_key);
  environment->out = &out;
  environment->err = &err;
  environment->raw_out = surroundings->out;
  environment->raw_err = surroundings->err;
  const absl::Status refused = RefuseTokens(words);
  const absl::StatusOr<Resolved> resolved = refused.ok() ? Resolve(words) : refused;
  if (!resolved.ok()) {
    PrintError(*environment, resolved.status());
    return ExitStatus::kUsage;
  }
  if (resolved->command == nullptr) {
    *environment->out << HelpText(resolved->help_for, environment->width);
    return ExitStatus::kDone;
  }
  const absl::StatusOr<ExitStatus> result =
      RunCommand(*resolved->command, resolved->words, environment);
  if (result.ok()) return *result;
  PrintError(*environment, result.status());
  return ExitStatusFor(result.status());
}

}  // namespace assay::cli
