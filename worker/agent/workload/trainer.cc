#include "worker/agent/workload/trainer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"

#include "common/exit_code.h"
#include "common/file.h"
#include "common/process.h"
#include "worker/agent/workload/cores.h"

namespace assay::agent {
namespace {

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

class Trainer final : public Workload {
 public:
  Trainer(v1::RunSpec spec, RunDirectory directory)
      : spec_(std::move(spec)), directory_(std::move(directory)) {}

  absl::Status Check(const v1::WorkerConfig& worker) const override {
    if (access(worker.trainer_program().c_str(), X_OK) == 0) return absl::OkStatus();
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot start ", worker.trainer_program()));
  }

  std::vector<RankCommand> Commands(const v1::WorkerConfig& worker,
                                    const StartContext& context) const override {
    const int rank_count = spec_.ranks_per_node();
    std::vector<RankCommand> commands;
    for (int local_rank = 0; local_rank < rank_count; ++local_rank) {
      const int rank = RankOf(local_rank);
      const int inherited_fd = rank == 0 ? context.listener_fd : -1;
      commands.push_back(
          {.rank = rank,
           .argv = {worker.trainer_program(), SpecPath(local_rank)},
           .environment = EnvironmentOfRank(worker, ThreadsPerRank(worker, rank_count)),
           .working_directory = directory_.RanksPath(),
           .output_path = OutputPath(rank),
           .cores = CoresOfRank(worker, local_rank, rank_count),
           .inherited_fd = inherited_fd,
           .inputs = Inputs(local_rank, worker, inherited_fd >= 0)});
    }
    return commands;
  }

  StepExit Read(const RankExit& exit) const override {
    if (exit.code >= kSignalBase)
      return {exit.code, absl::StrCat("rank ", exit.rank, ": ", DescribeSignal(exit.code))};
    const auto code = static_cast<ExitCode>(exit.code);
    // What only the node itself may say is not a trainer's to say: it would be given another try.
    const bool is_nodes = code == ExitCode::kNodeFailed;
    const bool is_known = code <= kLastExitCode && !is_nodes;
    const std::string what = is_known ? std::string(Describe(code))
                                      : absl::StrCat("ended with a code of its own, ", exit.code);
    return {is_nodes ? static_cast<int>(ExitCode::kInternal) : exit.code,
            absl::StrCat("rank ", exit.rank, ": ", what)};
  }

  std::optional<Sight> Sees(const v1::WorkerConfig&) const override { return std::nullopt; }

  std::vector<ArtifactFile> Collected() const override {
    std::vector<ArtifactFile> files;
    if (spec_.node_rank() == 0) {
      files.push_back({"progress.jsonl", directory_.ProgressPath()});
      files.push_back({"engines.textproto", EnginesPath()});
    }
    for (int local_rank = 0; local_rank < spec_.ranks_per_node(); ++local_rank) {
      const int rank = RankOf(local_rank);
      files.push_back({absl::StrCat("trainer_", rank, ".out"), OutputPath(rank)});
    }
    return files;
  }

 private:
  int RankOf(int local_rank) const {
    return spec_.node_rank() * spec_.ranks_per_node() + local_rank;
  }
  std::string SpecPath(int local_rank) const {
    return directory_.Path(absl::StrCat("spec_", local_rank, ".textproto"));
  }
  std::string OutputPath(int rank) const {
    return directory_.Path(absl::StrCat("trainer_", rank, ".out"));
  }

  // Written by rank 0.
  std::string EnginesPath() const { return JoinPath(directory_.RanksPath(), "engines.textproto"); }
  // Of the run that this one replaces.
  std::string StoredEnginesPath() const { return directory_.Path("stored_engines.textproto"); }

  std::vector<InputFile> Inputs(int local_rank, const v1::WorkerConfig& worker,
                                bool has_listener) const {
    std::vector<InputFile> inputs = {
        {SpecPath(local_rank), SpecText(local_rank, worker, has_listener)}};
    if (HasStoredEngines(local_rank))
      inputs.push_back({StoredEnginesPath(), spec_.engine_choices()});
    return inputs;
  }
  bool HasStoredEngines(int local_rank) const {
    return RankOf(local_rank) == 0 && !spec_.engine_choices().empty();
  }

  std::string SpecText(int local_rank, const v1::WorkerConfig& worker, bool has_listener) const {
    v1::RunSpec spec = spec_;
    spec.set_local_rank(local_rank);
    spec.set_log_path(directory_.ResultPath(spec.run_number()));
    spec.set_progress_path(directory_.ProgressPath());
    spec.set_is_rank_network_trusted(worker.is_rank_network_trusted());
    spec.set_checkpoint_path(JoinPath(directory_.RanksPath(), "checkpoint"));
    spec.set_engine_choices_output(EnginesPath());
    spec.clear_engine_choices();
    if (HasStoredEngines(local_rank)) spec.set_engine_choices_path(StoredEnginesPath());
    spec.set_stage_directory(
        spec.dataset().is_staged() ? directory_.StagePath(worker.stage_directory()) : "");
    if (has_listener) spec.set_rendezvous_listener(kInheritedFd);
    std::string text;
    google::protobuf::TextFormat::PrintToString(spec, &text);
    return text;
  }

  const v1::RunSpec spec_;
  const RunDirectory directory_;
};

}  // namespace

std::unique_ptr<const Workload> MakeTrainer(const v1::RunSpec& spec,
                                            const RunDirectory& directory) {
  return std::make_unique<Trainer>(spec, directory);
}

}  // namespace assay::agent
