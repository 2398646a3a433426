#include "cli/results_tree.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "common/file.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr int kDepthMax = 12;
constexpr int64_t kLogBytesMax = int64_t{512} << 20;

bool IsDirectory(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool IsResultFile(absl::string_view name) {
  return absl::StartsWith(name, "result_") && absl::EndsWith(name, ".txt");
}

// result_2 comes before result_10.
int64_t NumberOf(absl::string_view name) {
  const absl::string_view digits = name.substr(7, name.size() - 7 - 4);
  int64_t number = 0;
  return absl::SimpleAtoi(digits, &number) ? number : std::numeric_limits<int64_t>::max();
}

// Names the parts of .../ORG/results/SYSTEM[/strong|weak]/BENCHMARK, from the right.
void NameParts(const std::string& path, ResultFolder* folder) {
  std::vector<std::string> parts = absl::StrSplit(path, '/', absl::SkipEmpty());
  std::vector<std::string> source;
  const auto take = [&]() -> std::string {
    if (parts.empty()) return "";
    std::string part = parts.back();
    parts.pop_back();
    source.insert(source.begin(), part);
    return part;
  };
  folder->benchmark = take();
  if (!parts.empty() && (parts.back() == "strong" || parts.back() == "weak"))
    folder->scaling = take();
  folder->system = take();
  if (!parts.empty() && parts.back() == "results") {
    take();
    folder->organization = take();
  }
  folder->source_path = absl::StrJoin(source, "/");
}

// ORG/systems/SYSTEM.json, beside ORG/results.
Json SystemDescription(const std::string& path, ResultFolder* folder) {
  const size_t results = path.rfind("/results/");
  if (results == std::string::npos) return nullptr;
  const std::string file =
      absl::StrCat(path.substr(0, results), "/systems/", folder->system, ".json");
  const absl::StatusOr<std::string> text = ReadFile(file);
  if (!text.ok()) {
    folder->oddities.push_back(
        absl::StrCat("no system description systems/", folder->system, ".json"));
    return nullptr;
  }
  Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    folder->oddities.push_back(absl::StrCat("systems/", folder->system, ".json is no JSON object"));
    return nullptr;
  }
  return json;
}

absl::Status Walk(const std::string& path, int depth, std::vector<ResultFolder>* folders) {
  if (depth > kDepthMax) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  ResultFolder folder{.path = path};
  for (const std::string& name : names) {
    const std::string child = JoinPath(path, name);
    if (IsDirectory(child)) {
      if (name == "pruned_results" || name == "power" || absl::StartsWith(name, ".")) continue;
      RETURN_IF_ERROR(Walk(child, depth + 1, folders));
    } else if (IsResultFile(name)) {
      folder.files.push_back(name);
    } else if (name != "scaling.json") {
      folder.oddities.push_back(absl::StrCat("unexpected file ", name));
    }
  }
  if (folder.files.empty()) return absl::OkStatus();
  std::stable_sort(
      folder.files.begin(), folder.files.end(),
      [](const std::string& a, const std::string& b) { return NumberOf(a) < NumberOf(b); });
  NameParts(path, &folder);
  folder.system_description = SystemDescription(path, &folder);
  folders->push_back(std::move(folder));
  return absl::OkStatus();
}

void ScoreThroughput(const rules::RuleSet& rules, JudgedFolder* judged) {
  double first = std::numeric_limits<double>::infinity();
  double last = -first;
  for (const JudgedRun& run : judged->runs) {
    const rules::Facts& facts = run.result.facts;
    if (!run.result.pass || !facts.run_start_ms || !facts.run_stop_ms) continue;
    ++judged->model_count;
    first = std::min(first, *facts.run_start_ms);
    last = std::max(last, *facts.run_stop_ms);
  }
  const rules::Benchmark* benchmark = rules.FindBenchmark(judged->folder.benchmark);
  const int required = benchmark == nullptr ? 1 : benchmark->runs_required;
  if (judged->model_count < required) {
    judged->score.reason =
        absl::StrCat("only ", judged->model_count, " of at least ", required, " models pass");
    return;
  }
  constexpr double kMsPerMinute = 60000;
  judged->time_to_all_minutes = (last - first) / kMsPerMinute;
  judged->score.reason = absl::StrFormat("throughput: %d models in %.2f min", judged->model_count,
                                         *judged->time_to_all_minutes);
}

}  // namespace

absl::StatusOr<std::vector<ResultFolder>> FindResultFolders(const std::string& directory) {
  if (!IsDirectory(directory))
    return absl::NotFoundError(absl::StrCat("there is no folder ", directory));
  std::vector<ResultFolder> folders;
  RETURN_IF_ERROR(Walk(directory, 0, &folders));
  std::sort(folders.begin(), folders.end(),
            [](const ResultFolder& a, const ResultFolder& b) { return a.path < b.path; });
  return folders;
}

std::string JudgedFolder::division() const {
  // The description decides, as in the official summary: v0.7 has an open entry that logged closed.
  const Json& description = folder.system_description;
  if (description.is_object() && description.contains("division")) {
    const std::string division = absl::AsciiStrToLower(RawText(description["division"]));
    if (division == "closed" || division == "open") return division;
  }
  for (const JudgedRun& run : runs)
    if (!run.result.facts.division.empty()) return run.result.facts.division;
  return "";
}

void JudgedFolder::DropLogs() {
  for (JudgedRun& run : runs)
    std::string().swap(run.log);
}

absl::StatusOr<JudgedFolder> JudgeFolder(const ResultFolder& folder, const rules::RuleSet& rules) {
  JudgedFolder judged{.folder = folder, .rule_set = rules.name()};
  std::vector<rules::RunScore> scores;
  for (const std::string& name : folder.files) {
    const std::string path = JoinPath(folder.path, name);
    ASSIGN_OR_RETURN(const int64_t bytes, FileSize(path));
    if (bytes > kLogBytesMax)
      return absl::InvalidArgumentError(
          absl::StrCat(path, " has ", bytes, " bytes; no log is larger than ", kLogBytesMax));
    JudgedRun run{.file_name = name};
    ASSIGN_OR_RETURN(run.log, ReadFile(path));
    run.sha256 = Sha256Hex(run.log);
    run.result = rules::Check(run.log, rules);
    scores.push_back(rules::ScoreOf(run.result));
    judged.runs.push_back(std::move(run));
  }
  if (folder.scaling == "weak") {
    ScoreThroughput(rules, &judged);
  } else {
    judged.score = rules::Score(rules, scores);
  }
  return judged;
}

}  // namespace assay::cli
