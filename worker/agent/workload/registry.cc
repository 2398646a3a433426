#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/dataset/layout.h"
#include "common/file.h"
#include "worker/agent/workload/program.h"
#include "worker/agent/workload/trainer.h"
#include "worker/agent/workload/workload.h"

namespace assay::agent {
namespace {

constexpr int kRanksPerNodeMax = 1024;
constexpr const char* kLauncherPrefixes[] = {"OMPI_", "PMIX_", "SLURM_"};

struct Kind {
  v1::RunSpec::WorkloadCase workload;
  std::unique_ptr<const Workload> (*make)(const v1::RunSpec& spec, const RunDirectory& directory);
};

constexpr Kind kKinds[] = {
    {v1::RunSpec::kTrainer, MakeTrainer},
    {v1::RunSpec::kCommand, MakeProgram},
};

absl::Status Invalid(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("run spec: ", what));
}

// What no kind can do without.
absl::Status CheckSpec(const v1::RunSpec& spec) {
  if (spec.ranks_per_node() < 1 || spec.ranks_per_node() > kRanksPerNodeMax)
    return Invalid(absl::StrCat("ranks_per_node is ", spec.ranks_per_node(), ", want 1 to ",
                                kRanksPerNodeMax));
  if (spec.node_rank() < 0 || spec.node_rank() >= spec.node_count())
    return Invalid(
        absl::StrCat("node_rank is ", spec.node_rank(), " of ", spec.node_count(), " nodes"));
  if (spec.run_number() < 0) return Invalid("run_number is negative");
  if (spec.dataset().path().empty() || spec.dataset().path()[0] != '/')
    return Invalid(absl::StrCat("dataset.path \"", spec.dataset().path(), "\" is not absolute"));
  if (spec.has_command() && spec.command().command().empty())
    return Invalid("command has no program");
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> Workload::SampleFolders() const {
  return {std::string(dataset::SplitName(dataset::Split::kTrain)),
          std::string(dataset::SplitName(dataset::Split::kValidation))};
}

std::vector<std::string> SampleFoldersBelow(const Workload& workload, const std::string& root) {
  const std::string shards = JoinPath(root, dataset::kShardFolder);
  const bool is_sharded = FileExists(shards);
  std::vector<std::string> folders;
  if (is_sharded) folders.push_back(shards);
  for (const std::string& name : workload.SampleFolders()) {
    std::string folder = JoinPath(root, name);
    if (!is_sharded || FileExists(folder)) folders.push_back(std::move(folder));
  }
  return folders;
}

absl::StatusOr<std::unique_ptr<const Workload>> MakeWorkload(const v1::RunSpec& spec,
                                                             const RunDirectory& directory) {
  const absl::Status checked = CheckSpec(spec);
  if (!checked.ok()) return checked;
  for (const Kind& kind : kKinds)
    if (kind.workload == spec.workload_case()) return kind.make(spec, directory);
  return Invalid(
      "it names no workload that this agent knows; install the coordinator's version of "
      "assay-worker on this node");
}

absl::StatusOr<RankCommand> Workload::CommandOf(const Entrant&, const v1::WorkerConfig&,
                                                const StartContext&) const {
  return absl::InvalidArgumentError("the run has no launcher");
}

bool IsOfLauncher(absl::string_view variable) {
  return std::any_of(std::begin(kLauncherPrefixes), std::end(kLauncherPrefixes),
                     [variable](const char* prefix) { return absl::StartsWith(variable, prefix); });
}

std::string DescribeSignal(int code) {
  const int signal = code - kSignalBase;
  return absl::StrCat("killed by signal ", signal, " (", strsignal(signal), ")");
}

}  // namespace assay::agent
