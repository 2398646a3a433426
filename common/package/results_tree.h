// Published results on disk: ORG/results/SYSTEM[/strong|weak]/BENCHMARK/result_<i>.txt and
// ORG/systems/SYSTEM.json. Odd files are reported, not tripped over. (Rules specification, 4.1.)

#ifndef COMMON_PACKAGE_RESULTS_TREE_H_
#define COMMON_PACKAGE_RESULTS_TREE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/json_value.h"
#include "common/package/tree_reader.h"
#include "common/rules/check.h"
#include "common/rules/ruleset.h"
#include "common/rules/score.h"
#include "common/rules/throughput.h"

namespace assay::package {

inline constexpr int64_t kLogBytesMax = int64_t{512} << 20;

// result_<i>.txt: anything that begins with "result_" and ends with ".txt".
bool IsResultFile(absl::string_view name);

// power/result_<i>: what the power meters of one run said.
struct PowerFolder {
  std::string run;                 // "result_<i>"
  std::vector<std::string> files;  // node_<j>.txt, sw_<k>.txt and whatever else lies there
};

// One directory that holds result files: one entry.
struct ResultFolder {
  std::string path;         // on disk
  std::string source_path;  // ORG/results/SYSTEM/.../BENCHMARK
  std::string organization;
  std::string system;
  std::string scaling;  // strong, weak, or empty where the tree makes no difference
  std::string benchmark;
  std::vector<std::string> files;             // result_*.txt, by number
  std::vector<std::string> pruned_files;      // pruned_results/result_*.txt, by number
  bool has_power = false;                     // there is something named power
  std::vector<PowerFolder> power;             // power/result_<i>, by number
  std::vector<std::string> oddities;          // sentences about what else lies there
  std::optional<std::string> scaling_json;    // bytes of scaling.json
  std::optional<std::string> checker_params;  // bytes of package_checker_params
  std::string system_json;       // bytes of ORG/systems/SYSTEM.json; empty if there is none
  JsonValue system_description;  // the same parsed; null if it is no JSON object
};

// Everything in one directory, whether it holds result files or not. `tree` bounds what is
// followed. Never fails: what cannot be read becomes an oddity.
ResultFolder ReadResultFolder(const TreeReader& tree, const std::string& path);

// All folders with result files below `directory`, sorted by path. NOT_FOUND if it is no folder.
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
  rules::TimeToSolution score;                  // not for weak folders: their reason says so
  std::optional<rules::Throughput> throughput;  // of weak folders

  // closed or open: as the system's description says, else as logged.
  std::string division() const;
  // Frees the logs' bytes.
  void DropLogs();
};

// Reads and judges one log of `folder`: a name out of `files`, or "pruned_results/" and one out of
// `pruned_files`.
absl::StatusOr<JudgedRun> JudgeRun(const ResultFolder& folder, const std::string& name,
                                   const rules::RuleSet& rules);

// Reads and judges every file but the pruned ones. A file that cannot be read is an error.
absl::StatusOr<JudgedFolder> JudgeFolder(const ResultFolder& folder, const rules::RuleSet& rules);

// A member of a system description as text: strings as they are, integers as digits; empty if it is
// absent or anything else.
std::string MemberText(const JsonValue& description, absl::string_view name);

}  // namespace assay::package

#endif  // COMMON_PACKAGE_RESULTS_TREE_H_
