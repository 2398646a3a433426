#include "common/package/results_tree.h"

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
#include "absl/strings/strip.h"

#include "common/file.h"
#include "common/package/json_file.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::package {
namespace {

constexpr int kDepthMax = 12;

// result_2 comes before result_10; names without a number come last, in their own order.
int64_t NumberOf(absl::string_view name) {
  absl::ConsumePrefix(&name, "result_");
  absl::ConsumeSuffix(&name, ".txt");
  int64_t number = 0;
  return absl::SimpleAtoi(name, &number) ? number : std::numeric_limits<int64_t>::max();
}

bool IsBefore(const std::string& a, const std::string& b) {
  return NumberOf(a) < NumberOf(b);
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
void ReadSystemDescription(ResultFolder* folder) {
  const size_t results = folder->path.rfind("/results/");
  if (results == std::string::npos) return;
  const std::string root = folder->path.substr(0, results);
  const std::string name = absl::StrCat("systems/", folder->system, ".json");
  const absl::StatusOr<TreeReader> tree = TreeReader::Open(root);
  if (!tree.ok()) return;
  absl::StatusOr<std::string> text = tree->Read(JoinPath(root, name), kSmallFileBytesMax);
  if (!text.ok()) {
    folder->oddities.push_back(absl::StrCat("no system description ", name));
    return;
  }
  folder->system_json = *std::move(text);
  absl::StatusOr<JsonValue> json = ParseJsonFile(folder->system_json);
  if (!json.ok() || json->AsObject() == nullptr) {
    folder->oddities.push_back(absl::StrCat(name, " is no JSON object"));
    return;
  }
  folder->system_description = *std::move(json);
}

// The names in a directory; none, with an oddity, if it cannot be listed.
std::vector<std::string> Names(const std::string& path, ResultFolder* folder) {
  absl::StatusOr<std::vector<std::string>> names = ListDirectory(path);
  if (names.ok()) return *std::move(names);
  folder->oddities.push_back(std::string(names.status().message()));
  return {};
}

void ReadPruned(const TreeReader& tree, const std::string& path, ResultFolder* folder) {
  for (const std::string& name : Names(path, folder)) {
    if (IsResultFile(name) && tree.KindOf(JoinPath(path, name)) == PathKind::kFile) {
      folder->pruned_files.push_back(name);
    } else {
      folder->oddities.push_back(absl::StrCat("unexpected pruned_results/", name));
    }
  }
  std::stable_sort(folder->pruned_files.begin(), folder->pruned_files.end(), IsBefore);
}

void ReadPower(const TreeReader& tree, const std::string& path, ResultFolder* folder) {
  for (const std::string& name : Names(path, folder)) {
    const std::string child = JoinPath(path, name);
    if (!tree.IsDirectory(child)) {
      folder->oddities.push_back(absl::StrCat("unexpected power/", name));
      continue;
    }
    folder->power.push_back({.run = name, .files = Names(child, folder)});
  }
  std::stable_sort(
      folder->power.begin(), folder->power.end(),
      [](const PowerFolder& a, const PowerFolder& b) { return IsBefore(a.run, b.run); });
}

void ReadSmallFile(const TreeReader& tree, const std::string& name, ResultFolder* folder,
                   std::optional<std::string>* content) {
  absl::StatusOr<std::string> text = tree.Read(JoinPath(folder->path, name), kSmallFileBytesMax);
  if (text.ok()) {
    *content = *std::move(text);
  } else {
    folder->oddities.push_back(absl::StrCat("unreadable ", name, ": ", text.status().message()));
  }
}

// Takes one entry of a result directory that is no folder to walk into.
void TakeFile(const TreeReader& tree, const std::string& name, ResultFolder* folder) {
  const PathKind kind = tree.KindOf(JoinPath(folder->path, name));
  if (name == "scaling.json") {
    ReadSmallFile(tree, name, folder, &folder->scaling_json);
  } else if (name == "package_checker_params") {
    ReadSmallFile(tree, name, folder, &folder->checker_params);
  } else if (kind != PathKind::kFile) {
    folder->oddities.push_back(absl::StrCat(name, " is ", Describe(kind)));
  } else if (IsResultFile(name)) {
    folder->files.push_back(name);
  } else {
    folder->oddities.push_back(absl::StrCat("unexpected file ", name));
  }
}

// Appends the folders with result files at and below `path`. Links to folders are not followed, so
// that nothing is found twice.
absl::Status CollectFolders(const TreeReader& tree, const std::string& path, int depth,
                            std::vector<ResultFolder>* folders) {
  if (depth > kDepthMax) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  bool has_results = false;
  for (const std::string& name : names) {
    const std::string child = JoinPath(path, name);
    if (!tree.IsRealDirectory(child)) {
      has_results = has_results || IsResultFile(name);
      continue;
    }
    if (name == "pruned_results" || name == "power" || absl::StartsWith(name, ".")) continue;
    RETURN_IF_ERROR(CollectFolders(tree, child, depth + 1, folders));
  }
  if (!has_results) return absl::OkStatus();
  ResultFolder folder = ReadResultFolder(tree, path);
  if (!folder.files.empty()) folders->push_back(std::move(folder));
  return absl::OkStatus();
}

void ScoreWeak(const rules::RuleSet& rules, JudgedFolder* judged) {
  std::vector<rules::ModelRun> models;
  for (const JudgedRun& run : judged->runs)
    models.push_back(rules::ModelRunOf(run.result));
  const rules::Benchmark* benchmark = rules.FindBenchmark(judged->folder.benchmark);
  judged->throughput =
      rules::ScoreThroughput(models, benchmark == nullptr ? 1 : benchmark->runs_required,
                             static_cast<int>(judged->folder.pruned_files.size()));
  judged->score.reason =
      judged->throughput->is_scored
          ? absl::StrFormat("throughput: %d models in %.2f min", judged->throughput->model_count,
                            *judged->throughput->time_to_all_minutes)
          : judged->throughput->reason;
}

}  // namespace

bool IsResultFile(absl::string_view name) {
  return absl::StartsWith(name, "result_") && absl::EndsWith(name, ".txt");
}

ResultFolder ReadResultFolder(const TreeReader& tree, const std::string& path) {
  ResultFolder folder{.path = path};
  NameParts(path, &folder);
  for (const std::string& name : Names(path, &folder)) {
    const std::string child = JoinPath(path, name);
    const bool is_directory = tree.IsDirectory(child);
    folder.has_power = folder.has_power || name == "power";
    if (is_directory && name == "pruned_results") {
      ReadPruned(tree, child, &folder);
    } else if (is_directory && name == "power") {
      ReadPower(tree, child, &folder);
    } else if (!is_directory || IsResultFile(name)) {
      TakeFile(tree, name, &folder);
    }
  }
  std::stable_sort(folder.files.begin(), folder.files.end(), IsBefore);
  ReadSystemDescription(&folder);
  return folder;
}

absl::StatusOr<std::vector<ResultFolder>> FindResultFolders(const std::string& directory) {
  ASSIGN_OR_RETURN(const TreeReader tree, TreeReader::Open(directory));
  std::vector<ResultFolder> folders;
  RETURN_IF_ERROR(CollectFolders(tree, directory, 0, &folders));
  std::sort(folders.begin(), folders.end(),
            [](const ResultFolder& a, const ResultFolder& b) { return a.path < b.path; });
  return folders;
}

std::string JudgedFolder::division() const {
  // The description decides, as in the official summary: v0.7 has an open entry that logged closed.
  std::string division = absl::AsciiStrToLower(MemberText(folder.system_description, "division"));
  if (division == "closed" || division == "open") return division;
  for (const JudgedRun& run : runs)
    if (!run.result.facts.division.empty()) return run.result.facts.division;
  return "";
}

void JudgedFolder::DropLogs() {
  for (JudgedRun& run : runs)
    std::string().swap(run.log);
}

absl::StatusOr<JudgedRun> JudgeRun(const ResultFolder& folder, const std::string& name,
                                   const rules::RuleSet& rules) {
  const std::string path = JoinPath(folder.path, name);
  JudgedRun run{.file_name = name};
  ASSIGN_OR_RETURN(run.log, ReadFile(path, kLogBytesMax));
  run.sha256 = Sha256Hex(run.log);
  run.result = rules::Check(run.log, rules);
  return run;
}

absl::StatusOr<JudgedFolder> JudgeFolder(const ResultFolder& folder, const rules::RuleSet& rules) {
  JudgedFolder judged{.folder = folder, .rule_set = rules.name()};
  std::vector<rules::RunScore> scores;
  for (const std::string& name : folder.files) {
    ASSIGN_OR_RETURN(JudgedRun run, JudgeRun(folder, name, rules));
    scores.push_back(rules::ScoreOf(run.result));
    judged.runs.push_back(std::move(run));
  }
  if (folder.scaling == "weak") {
    ScoreWeak(rules, &judged);
  } else {
    judged.score = rules::Score(rules.scoring(), scores);
  }
  return judged;
}

std::string MemberText(const JsonValue& description, absl::string_view name) {
  const JsonValue* member = description.Find(name);
  if (member == nullptr) return "";
  if (const std::string* text = member->AsString(); text != nullptr) return *text;
  const std::optional<int64_t> number = member->AsInt64();
  return number.has_value() ? absl::StrCat(*number) : "";
}

}  // namespace assay::package
