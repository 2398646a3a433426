#include "cli/analyze/analysis_input.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/client/analysis_entry.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/package/results_tree.h"
#include "common/rules/registry.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr int64_t kAnalyzedEntriesMax = 10'000;

bool IsExistingDirectory(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// ------------------------------------------------------------------------------- the coordinator

absl::StatusOr<std::vector<v1::Submission>> FindEntries(const client::Client& client,
                                                        const Arguments& arguments) {
  std::vector<v1::Submission> entries;
  for (const std::string& id : arguments.All("ID_OR_DIR")) {
    ASSIGN_OR_RETURN(v1::Submission entry, client::GetEntry(client, id));
    entries.push_back(std::move(entry));
  }
  if (!entries.empty()) return entries;
  v1::ListSubmissionsRequest request;
  request.set_round(CanonicalRound(arguments.Get("round")));
  request.set_benchmark(arguments.Get("benchmark"));
  ASSIGN_OR_RETURN(entries, client::ListEntries(client, request, kAnalyzedEntriesMax));
  std::reverse(entries.begin(), entries.end());  // the oldest first
  return entries;
}

// The rules of the entries' round. Times do not depend on them, so a facility's round whose file is
// not here is no obstacle.
absl::StatusOr<RuleSetRef> RulesOf(Context* context, const Arguments& arguments,
                                   const std::string& round) {
  if (arguments.Has("round")) return LoadRuleSet(context->env(), arguments.Get("round"));
  absl::StatusOr<RuleSetRef> rules = LoadRuleSet(context->env(), round);
  if (!absl::IsNotFound(rules.status())) return rules;
  const std::string& newest = rules::BuiltInRuleSets().back()->name();
  context->Note(absl::StrCat("round ", round, " is not known here: quality targets are those of ",
                             newest, "; name its .toml file with --round"));
  return LoadRuleSet(context->env(), newest);
}

absl::StatusOr<AnalysisInput> ReadFromCoordinator(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const std::vector<v1::Submission> found, FindEntries(*client, arguments));
  if (found.empty())
    return absl::NotFoundError("the coordinator has no such entry; 'assay entry list' shows all");
  const std::string round = found.front().spec().round();
  for (const v1::Submission& entry : found)
    if (entry.spec().round() != round)
      return absl::InvalidArgumentError(
          absl::StrCat(client::ShortId(found.front().name()), " is of round ", round, " and ",
                       client::ShortId(entry.name()), " of ", entry.spec().round(),
                       ": their targets differ; analyze one round at a time"));
  AnalysisInput input;
  ASSIGN_OR_RETURN(input.rules, RulesOf(context, arguments, round));
  input.is_round_known = arguments.Has("round") || input.rules->name() == round;
  ProgressLine progress(context);
  for (const v1::Submission& submission : found) {
    progress.Draw(absl::StrCat("reading ", client::ShortId(submission.name())));
    ASSIGN_OR_RETURN(analysis::Entry entry,
                     client::ReadAnalysisEntry(*client, submission, *input.rules));
    input.entries.push_back(analysis::Characterize(std::move(entry)));
  }
  return input;
}

// ---------------------------------------------------------------------------------------- folders

absl::StatusOr<AnalysisInput> ReadFolders(Context* context, const Arguments& arguments) {
  if (!arguments.Has("round"))
    return absl::InvalidArgumentError(
        "which round is the folder of? say so with --round ('assay rules list')");
  AnalysisInput input;
  ASSIGN_OR_RETURN(input.rules, LoadRuleSet(context->env(), arguments.Get("round")));
  ProgressLine progress(context);
  for (const std::string& path : arguments.All("ID_OR_DIR")) {
    ASSIGN_OR_RETURN(const std::vector<package::ResultFolder> folders,
                     package::FindResultFolders(context->env().AbsolutePath(path)));
    for (const package::ResultFolder& folder : folders) {
      if (arguments.Has("benchmark") && folder.benchmark != arguments.Get("benchmark")) continue;
      progress.Draw(absl::StrCat("reading ", folder.source_path));
      ASSIGN_OR_RETURN(const package::JudgedFolder judged,
                       package::JudgeFolder(folder, *input.rules));
      input.entries.push_back(analysis::Characterize(client::AnalysisEntryOf(judged)));
    }
  }
  return input;
}

// True if `text` is a path rather than an id.
bool IsFolder(const Context& context, const std::string& text) {
  return !text.empty() && text[0] != '@' && IsExistingDirectory(context.env().AbsolutePath(text));
}

}  // namespace

absl::StatusOr<AnalysisInput> ReadAnalysisInput(Context* context, const Arguments& arguments) {
  const std::vector<std::string> what = arguments.All("ID_OR_DIR");
  const auto folders = std::count_if(
      what.begin(), what.end(), [&](const std::string& text) { return IsFolder(*context, text); });
  if (folders > 0 && folders < static_cast<ptrdiff_t>(what.size()))
    return absl::InvalidArgumentError("give either folders or entries, not both");
  if (folders == 0 && what.empty() && !arguments.Has("round"))
    return absl::InvalidArgumentError("give a folder, entries, or --round for all of a round");
  AnalysisInput input;
  if (folders > 0) {
    ASSIGN_OR_RETURN(input, ReadFolders(context, arguments));
  } else {
    ASSIGN_OR_RETURN(input, ReadFromCoordinator(context, arguments));
  }
  std::erase_if(input.entries, [&](const analysis::Characteristics& entry) {
    return (arguments.Has("benchmark") && entry.entry.benchmark != arguments.Get("benchmark")) ||
           (arguments.Has("division") && entry.entry.division != arguments.Get("division"));
  });
  if (input.entries.empty())
    return absl::NotFoundError(
        "nothing is left to analyze: no result_*.txt files, or none of that "
        "benchmark and division");
  std::stable_sort(input.entries.begin(), input.entries.end(),
                   [](const analysis::Characteristics& a, const analysis::Characteristics& b) {
                     return a.entry.benchmark < b.entry.benchmark;
                   });
  return input;
}

Positional AnalysisPositional() {
  return {.name = "ID_OR_DIR",
          .help = "folders with results, at any depth, or entries as e-42; none: all of --round",
          .is_required = false,
          .is_repeated = true,
          .completes = Completes::kEntryOrDirectory};
}

std::vector<Option> AnalysisOptions() {
  return {{.name = "round",
           .kind = Option::Kind::kText,
           .value = "ROUND",
           .help = "v0.7, hpc-3.0.0, or a facility round's .toml file; of entries their own",
           .completes = Completes::kRound},
          {.name = "benchmark",
           .kind = Option::Kind::kText,
           .value = "BENCHMARK",
           .help = "of this benchmark only",
           .completes = Completes::kBenchmark},
          {.name = "division",
           .kind = Option::Kind::kChoice,
           .value = "DIVISION",
           .help = "of this division only",
           .choices = {"closed", "open"}}};
}

}  // namespace assay::cli
