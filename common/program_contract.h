// Contract 1 between Assay and somebody else's training program (docs/adapters.md): the names of
// the variables that a program finds in its environment. One list for those who check submissions,
// who start programs and who explain.

#ifndef COMMON_PROGRAM_CONTRACT_H_
#define COMMON_PROGRAM_CONTRACT_H_

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace assay {

inline constexpr int kProgramContract = 1;  // rises when the meaning of a variable changes

// Bills of materials among the files of a run: this, the rank of the node, ".json".
inline constexpr char kMaterialsPrefix[] = "materials_";
// In the same way, what a node has passed in the pre-flight for the run's set.
inline constexpr char kPreflightPrefix[] = "preflight_";
// And how it saw the first touch of the data: by the run, and by nobody knows whom.
inline constexpr char kTouchPrefix[] = "touch_";
inline constexpr char kObservedPrefix[] = "observed_";

struct ContractVariable {
  const char* name;
  bool is_of_process = false;  // only where each process is a rank
};

inline constexpr ContractVariable kContractVariables[] = {
    {"ASSAY_CONTRACT"},
    {"ASSAY_RUN"},
    {"ASSAY_SUBMISSION"},
    {"ASSAY_RUN_NUMBER"},
    {"ASSAY_ROUND"},
    {"ASSAY_BENCHMARK"},
    {"ASSAY_DIVISION"},
    {"ASSAY_ORGANIZATION"},
    {"ASSAY_SYSTEM"},
    {"ASSAY_STATUS"},
    {"ASSAY_SEED"},
    {"ASSAY_QUALITY_KEY"},
    {"ASSAY_QUALITY_TARGET"},
    {"ASSAY_EPOCHS_MAX"},
    {"ASSAY_HYPERPARAMETERS"},
    {"ASSAY_DATASET"},
    {"ASSAY_DATASET_DIGEST"},
    {"ASSAY_TRAIN_SAMPLES"},
    {"ASSAY_EVAL_SAMPLES"},
    {"ASSAY_STAGING"},
    {"ASSAY_STAGE"},
    {"ASSAY_IS_STAGING_TIMED"},
    {"ASSAY_LOG"},
    {"ASSAY_OUTPUT"},
    {"ASSAY_CODE"},
    {"ASSAY_NODE_RANK"},
    {"ASSAY_NODE_COUNT"},
    {"ASSAY_RANKS_PER_NODE"},
    {"ASSAY_WORLD_SIZE"},
    {"ASSAY_HOSTS"},
    {"ASSAY_HOSTFILE"},
    {"ASSAY_RANK", true},
    {"ASSAY_LOCAL_RANK", true},
    {"ASSAY_MASTER_ADDR"},
    {"ASSAY_MASTER_PORT"},
    {"ASSAY_DEADLINE_UNIX_MS"},
};

inline constexpr char kPerRank[] = "per-rank";
inline constexpr char kPerNode[] = "per-node";
inline constexpr char kSrun[] = "srun";
inline constexpr char kMpirun[] = "mpirun";
inline constexpr char kLogIsFile[] = "file";
inline constexpr char kLogIsOutput[] = "stdout";

// Whether node 0 starts the ranks of all nodes, through a program of the site.
inline bool IsSiteLauncher(absl::string_view launcher) {
  return launcher == kSrun || launcher == kMpirun;
}

// Whether a program of that launcher finds the variable.
inline bool IsContractVariable(absl::string_view name, absl::string_view launcher) {
  return std::any_of(std::begin(kContractVariables), std::end(kContractVariables),
                     [&](const ContractVariable& variable) {
                       return name == variable.name &&
                              (!variable.is_of_process || launcher != kPerNode);
                     });
}

// A text with ${ASSAY_...} in it: parts of which every second is a name. "a${B}c" is {"a", "B",
// "c"}. nullopt if a brace is not closed. Other dollars stand for themselves.
inline std::optional<std::vector<std::string>> SplitAtVariables(absl::string_view text) {
  constexpr absl::string_view kBegin = "${ASSAY_";
  std::vector<std::string> parts(1);
  while (true) {
    const size_t begin = text.find(kBegin);
    parts.back() += std::string(text.substr(0, begin));
    if (begin == absl::string_view::npos) return parts;
    text.remove_prefix(begin);
    const size_t end = text.find('}');
    if (end == absl::string_view::npos) return std::nullopt;
    parts.emplace_back(text.substr(2, end - 2));
    parts.emplace_back();
    text.remove_prefix(end + 1);
  }
}

}  // namespace assay

#endif  // COMMON_PROGRAM_CONTRACT_H_
