#include "common/rules/programs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/program_contract.h"
#include "common/rules/benchmark_settings.h"

namespace assay::rules {
namespace {

constexpr char kProgramSection[] = "Assay, external programs";
constexpr char kProgramClosedSection[] = "Assay, external programs: divisions";
constexpr int64_t kSourceMax = int64_t{64} << 20;
constexpr int64_t kMemoryMibMax = int64_t{1} << 30;
constexpr size_t kProgramListMax = 256;    // arguments, variables, patterns
constexpr size_t kProgramTextMax = 32768;  // of one of them
constexpr size_t kDigestLength = 64;

constexpr TextRule kProgramRules[] = {
    {"R-WRK-001", "workload.command", "a list: a program and its arguments", kProgramSection,
     R"(write it as command = ["python3", "${ASSAY_CODE}/train.py"])"},
    {"R-WRK-002", "workload.launcher",
     "per-rank (each node starts ranks_per_node processes), per-node (each starts one), srun or "
     "mpirun (node 0 starts that, which starts all)",
     kProgramSection, "choose one of the four"},
    {"R-WRK-003", "workload.env",
     "names of letters, digits and _, other than ASSAY_*, SLURM_* and LD_PRELOAD", kProgramSection,
     "choose another name; what Assay tells programs is in docs/adapters.md"},
    {"R-WRK-004", "workload.command", "variables that the program has", kProgramSection,
     "docs/adapters.md has their names; per-node programs have no ASSAY_RANK"},
    {"R-WRK-005", "workload.log", "file or stdout", kProgramSection,
     "let the program append its MLLOG lines to the file that ASSAY_LOG names"},
    {"R-WRK-006", "workload.collect", "patterns of files below ASSAY_OUTPUT", kProgramSection,
     R"(write them as collect = ["weights_*.npy"], without .. and without a / at the beginning)"},
    {"R-WRK-007", "workload.stop_grace_s", "1 to 120 seconds between TERM and KILL",
     kProgramSection, "choose a number of seconds from 1 to 120"},
    {"R-WRK-008", "workload.memory_mib", "a number of MiB, 0 for no limit", kProgramSection,
     "choose a number of MiB from 0 to 1073741824"},
    {"R-WRK-009", "workload.source", "an archive of at most 64 MiB with a SHA-256", kProgramSection,
     "let `assay submit` pack a folder; leave data and builds out of it"},
    {"R-WRK-010", "workload.source", "a source from a clean git commit, in the closed division",
     kProgramClosedSection,
     "commit what has changed in the folder, or submit to the open division"},
    {"R-WRK-011", "workload.launcher", "nodes of Slurm, for srun", kProgramSection,
     "choose mpirun, or a coordinator whose nodes are jobs of Slurm"},
    {"R-WRK-012", "workload.image", "an absolute path, as the nodes see it, with a SHA-256",
     kProgramSection, "name the squashfs or tar file by a path that all nodes have"},
    {"R-WRK-020", "workload", "a program: Assay's own trainer does not know the benchmark",
     kProgramSection, "say in [workload] what trains it; docs/adapters.md"},
};

Finding UnfitProgram(absl::string_view id, std::string found) {
  const TextRule& rule = FindRule(kProgramRules, id);
  return Violation(rule, absl::StrCat("program:", rule.key), std::move(found));
}

bool IsProgramText(absl::string_view text) {
  return text.size() <= kProgramTextMax && !absl::StrContains(text, '\0');
}

bool IsSettable(absl::string_view name) {
  const bool is_name = !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
                       std::all_of(name.begin(), name.end(), [](char c) {
                         return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
                       });
  return is_name && name.size() <= kProgramTextMax && !absl::StartsWith(name, "ASSAY_") &&
         !absl::StartsWith(name, "SLURM_") && name != "LD_PRELOAD";
}

bool IsBelowOutput(absl::string_view pattern) {
  if (pattern.empty() || !IsProgramText(pattern)) return false;
  for (const absl::string_view part : absl::StrSplit(pattern, '/'))
    if (part.empty() || part == "." || part == "..") return false;
  return true;
}

void CheckProgramCommand(const Program& program, std::vector<Finding>* findings) {
  const std::vector<std::string>& command = program.command;
  if (command.empty() || command[0].empty() || command.size() > kProgramListMax ||
      !std::all_of(command.begin(), command.end(), IsProgramText)) {
    findings->push_back(UnfitProgram("R-WRK-001", command.empty() ? "none" : command[0]));
    return;
  }
  for (const std::string& argument : command) {
    const std::optional<std::vector<std::string>> parts = SplitAtVariables(argument);
    if (!parts) findings->push_back(UnfitProgram("R-WRK-004", argument));
    for (size_t i = 1; parts && i < parts->size(); i += 2)
      if (!IsContractVariable((*parts)[i], program.launcher))
        findings->push_back(UnfitProgram("R-WRK-004", absl::StrCat("${", (*parts)[i], "}")));
  }
}

void CheckProgramLists(const Program& program, std::vector<Finding>* findings) {
  if (program.env.size() > kProgramListMax)
    findings->push_back(UnfitProgram("R-WRK-003", absl::StrCat(program.env.size(), " variables")));
  for (const auto& [name, value] : program.env)
    if (!IsSettable(name) || !IsProgramText(value))
      findings->push_back(UnfitProgram("R-WRK-003", name));
  if (program.collect.size() > kProgramListMax)
    findings->push_back(
        UnfitProgram("R-WRK-006", absl::StrCat(program.collect.size(), " patterns")));
  for (const std::string& pattern : program.collect)
    if (!IsBelowOutput(pattern)) findings->push_back(UnfitProgram("R-WRK-006", pattern));
}

bool IsDigest(absl::string_view text) {
  return text.size() == kDigestLength && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

void CheckProgramImage(const Program& program, std::vector<Finding>* findings) {
  if (program.image_path.empty() && program.image_digest.empty()) return;
  if (!absl::StartsWith(program.image_path, "/") || !IsProgramText(program.image_path))
    findings->push_back(UnfitProgram("R-WRK-012", program.image_path));
  if (!IsDigest(program.image_digest))
    findings->push_back(UnfitProgram("R-WRK-012", absl::StrCat("sha256:", program.image_digest)));
}

void CheckProgramSource(const Program& program, std::vector<Finding>* findings) {
  if (program.has_source && (!IsDigest(program.source_digest) || program.source_bytes < 1 ||
                             program.source_bytes > kSourceMax))
    findings->push_back(UnfitProgram("R-WRK-009", absl::StrCat(program.source_bytes, " bytes")));
  if (program.division != "closed") return;
  if (!program.has_source) findings->push_back(UnfitProgram("R-WRK-010", "no source"));
  if (program.has_source && (program.git_commit.empty() || program.is_modified))
    findings->push_back(
        UnfitProgram("R-WRK-010", program.git_commit.empty()
                                      ? "a folder in no git repository"
                                      : absl::StrCat("changes after commit ", program.git_commit)));
}

}  // namespace

std::span<const TextRule> ProgramRules() {
  return kProgramRules;
}

std::vector<Finding> CheckNativeTrainer(absl::string_view benchmark) {
  if (FindBenchmarkSettings(benchmark) != nullptr) return {};
  return {UnfitProgram("R-WRK-020", absl::StrCat("none for ", benchmark))};
}

Finding SrunWithoutSlurm(absl::string_view node_launcher) {
  return UnfitProgram("R-WRK-011", absl::StrCat("nodes of launcher ", node_launcher));
}

std::vector<Finding> CheckProgram(const Program& program) {
  std::vector<Finding> findings;
  CheckProgramCommand(program, &findings);
  if (program.launcher != kPerRank && program.launcher != kPerNode &&
      !IsSiteLauncher(program.launcher))
    findings.push_back(UnfitProgram("R-WRK-002", program.launcher));
  CheckProgramLists(program, &findings);
  if (program.log != kLogIsFile && program.log != kLogIsOutput)
    findings.push_back(UnfitProgram("R-WRK-005", program.log));
  if (program.stop_grace_s < 1 || program.stop_grace_s > kStopGraceMax)
    findings.push_back(UnfitProgram("R-WRK-007", absl::StrCat(program.stop_grace_s)));
  if (program.memory_mib < 0 || program.memory_mib > kMemoryMibMax)
    findings.push_back(UnfitProgram("R-WRK-008", absl::StrCat(program.memory_mib)));
  CheckProgramSource(program, &findings);
  CheckProgramImage(program, &findings);
  return findings;
}

}  // namespace assay::rules
