// Tables that more than one HPC round shares (rules specification, sections 3.1 to 3.8). A round's
// own file says what differs.

#ifndef COMMON_RULES_HPC_TABLES_H_
#define COMMON_RULES_HPC_TABLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/rules/condition.h"
#include "common/rules/ruleset.h"

namespace assay::rules {

inline constexpr int64_t kInitLimitMs = 30 * 60 * 1000;

// Names of the sections of the HPC rules document.
inline constexpr char kSubmissionSection[] = "HPC rules, Submission";
inline constexpr char kTimingSection[] = "HPC rules, Timing";
inline constexpr char kHyperparameterSection[] = "HPC rules, Hyperparameters";
inline constexpr char kQualitySection[] = "HPC rules, Benchmarks";
inline constexpr char kDataSection[] = "HPC rules, Data set";

struct CommonOptions {
  bool staging_after_run_start = true;
  int64_t init_limit_ms = kInitLimitMs;
};
Config CommonConfig(const CommonOptions& options);
Config ClosedCommonConfig(const std::vector<std::string>& benchmarks);
Config OpenCommonConfig(const std::vector<std::string>& benchmarks);

// The benchmarks as of round 1.0; each config list holds closed_<name> (with the configs that it
// asks for) and open_<name>.
Benchmark Cosmoflow();
Benchmark Deepcam();
Benchmark Oc20();
Benchmark Openfold();
std::vector<Config> CosmoflowConfigs();
std::vector<Config> DeepcamConfigs();
std::vector<Config> Oc20Configs();
std::vector<Config> OpenfoldConfigs();

// The demand that a benchmark's quality target makes: in both divisions, and alone in open.
KeyRule QualityRule(std::string id, const Benchmark& benchmark);

// A required hyperparameter. `id` as in "R-HP-004".
KeyRule Hyperparameter(std::string id, std::string key, std::vector<Condition> checks,
                       std::string remedy = "");

// Adds `added` to the end of `configs`.
void Append(std::vector<Config> added, std::vector<Config>* configs);

}  // namespace assay::rules

#endif  // COMMON_RULES_HPC_TABLES_H_
