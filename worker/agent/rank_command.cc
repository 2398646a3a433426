#include "worker/agent/rank_command.h"

#include <sched.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"

#include "common/file.h"

namespace assay::agent {
namespace {

constexpr int kRanksPerNodeMax = 1024;

int UsableCoreCount() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

int ThreadsPerRank(const v1::WorkerConfig& worker, int rank_count) {
  int core_count = worker.core_count();
  if (core_count == 0) core_count = worker.cores_size();
  if (core_count == 0) core_count = UsableCoreCount();
  return std::max(1, core_count / rank_count);
}

// Consecutive cores for each rank; all of them for every rank if there are fewer than ranks.
std::vector<int> CoresOfRank(const v1::WorkerConfig& worker, int local_rank, int rank_count) {
  const std::vector<int> all(worker.cores().begin(), worker.cores().end());
  const int share = static_cast<int>(all.size()) / rank_count;
  if (share == 0) return all;
  const auto first = all.begin() + local_rank * share;
  return {first, first + share};
}

std::vector<std::string> EnvironmentOfRank(const v1::WorkerConfig& worker, int thread_count) {
  std::vector<std::string> environment;
  // UCX and OpenMP read these; the configuration has the last word.
  if (worker.trainer_environment().count("OMP_NUM_THREADS") == 0)
    environment.push_back(absl::StrCat("OMP_NUM_THREADS=", thread_count));
  for (const auto& [name, value] : worker.trainer_environment())
    environment.push_back(absl::StrCat(name, "=", value));
  std::sort(environment.begin(), environment.end());
  return environment;
}

}  // namespace

absl::Status CheckSpec(const v1::RunSpec& spec) {
  const auto invalid = [](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("run spec: ", what));
  };
  if (spec.ranks_per_node() < 1 || spec.ranks_per_node() > kRanksPerNodeMax)
    return invalid(absl::StrCat("ranks_per_node is ", spec.ranks_per_node(), ", want 1 to ",
                                kRanksPerNodeMax));
  if (spec.node_rank() < 0 || spec.node_rank() >= spec.node_count())
    return invalid(
        absl::StrCat("node_rank is ", spec.node_rank(), " of ", spec.node_count(), " nodes"));
  if (spec.run_number() < 0) return invalid("run_number is negative");
  if (spec.dataset().path().empty() || spec.dataset().path()[0] != '/')
    return invalid(absl::StrCat("dataset.path \"", spec.dataset().path(), "\" is not absolute"));
  return absl::OkStatus();
}

std::string StageDirectory(const RunDirectory& directory, const v1::WorkerConfig& worker) {
  return JoinPath(worker.stage_directory(),
                  std::filesystem::path(directory.path()).filename().string());
}

std::string RankSpecPath(const RunDirectory& directory, int local_rank) {
  return directory.Path(absl::StrCat("spec_", local_rank, ".textproto"));
}

v1::RunSpec SpecOfRank(const v1::RunSpec& spec, int local_rank, const RunDirectory& directory,
                       const v1::WorkerConfig& worker) {
  v1::RunSpec result = spec;
  result.set_local_rank(local_rank);
  result.set_log_path(directory.ResultPath(spec.run_number()));
  result.set_progress_path(directory.ProgressPath());
  result.set_is_rank_network_trusted(worker.is_rank_network_trusted());
  result.set_checkpoint_path(JoinPath(directory.RanksPath(), "checkpoint"));
  result.set_stage_directory(spec.dataset().is_staged() ? StageDirectory(directory, worker) : "");
  return result;
}

std::vector<RankCommand> CommandsOf(const v1::RunSpec& spec, const RunDirectory& directory,
                                    const v1::WorkerConfig& worker) {
  const int rank_count = spec.ranks_per_node();
  std::vector<RankCommand> commands;
  for (int local_rank = 0; local_rank < rank_count; ++local_rank) {
    const int rank = spec.node_rank() * rank_count + local_rank;
    commands.push_back(
        RankCommand{.rank = rank,
                    .argv = {worker.trainer_program(), RankSpecPath(directory, local_rank)},
                    .environment = EnvironmentOfRank(worker, ThreadsPerRank(worker, rank_count)),
                    .working_directory = directory.RanksPath(),
                    .output_path = directory.TrainerOutputPath(rank),
                    .cores = CoresOfRank(worker, local_rank, rank_count)});
  }
  return commands;
}

}  // namespace assay::agent
