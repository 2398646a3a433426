// Published results on disk: ORG/results/SYSTEM[/strong|weak]/BENCHMARK/result_<i>.txt and
// ORG/systems/SYSTEM.json. Odd files are reported, not tripped over.

#ifndef CLI_RESULTS_TREE_H_
#define CLI_RESULTS_TREE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/print.h"

#include "common/rules/check.h"
#include "common/rules/ruleset.h"
#include "common/rules/score.h"

namespace assay::cli {

// One directory that holds result files: one entry.
struct ResultFolder {
  std::string path;         // on disk
  std::string source_path;  // ORG/results/SYSTEM/.../BENCHMARK
  std::string organization;
  std::string system;
  std::string scaling;  // strong, weak, or empty where the tree makes no difference
  std::string benchmark;
  std::vector<std::string> files;     // result_*.txt, by number
  std::vector<std::string> oddities;  // sentences about what else lies there
  Json system_description;            // ORG/systems/SYSTEM.json; null if there is none
};

// All result folders below `directory`, sorted by path. pruned_results and power are left out.
absl::StatusOr<std::vector<ResultFolder>> FindResultFolders(const std::string& directory);

struct JudgedRun {
  std::string file_name;
  std::string log;  // the file's bytes
  std::string sha256;
  rules::CheckResult result;
};

struct JudgedFolder {
  ResultFolder folder;
  std::string rule_set;
  std::vector<JudgedRun> runs;
  rules::TimeToSolution score;  // not for weak folders: their reason says so
  // Throughput of weak folders: models that pass, and the time from the first start to the last
  // stop (rules specification, section 5.2).
  int model_count = 0;
  std::optional<double> time_to_all_minutes;

  // closed or open: as the system's description says, else as logged.
  std::string division() const;
  // Frees the logs' bytes.
  void DropLogs();
};

// Reads and judges every file. A file that cannot be read is an error.
absl::StatusOr<JudgedFolder> JudgeFolder(const ResultFolder& folder, const rules::RuleSet& rules);

// assay.folder_score/v1.
Json FolderScoreJson(const JudgedFolder& judged);

}  // namespace assay::cli

#endif  // CLI_RESULTS_TREE_H_
