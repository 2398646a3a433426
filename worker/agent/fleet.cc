#include "worker/agent/fleet.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"

#include "common/file.h"
#include "common/status.h"
#include "worker/agent/config.h"
#include "worker/agent/text_proto.h"

namespace assay::agent {
namespace {

// A shared file system tells nobody of changes that another machine makes.
constexpr absl::Duration kTokenPoll = absl::Milliseconds(200);

absl::StatusOr<std::string> Variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value != nullptr && *value != '\0') return std::string(value);
  return absl::FailedPreconditionError(
      absl::StrCat(name,
                   " is not set: only srun starts assay-worker fleet, in a job of the "
                   "coordinator's"));
}

// What all agents of the job are told, for the one of this name. `directory`: empty: on standard
// input.
absl::StatusOr<v1::WorkerConfig> LoadFleetConfig(const std::string& directory,
                                                 const std::string& name) {
  v1::WorkerConfig config;
  const std::string origin =
      directory.empty() ? "standard input" : JoinPath(directory, "worker.textproto");
  if (directory.empty()) {
    const std::string text(std::istreambuf_iterator<char>(std::cin), {});
    RETURN_IF_ERROR(ParseTextProto(origin, text, &config));
  } else {
    RETURN_IF_ERROR(LoadTextProto(origin, &config));
  }
  config.set_name(name);
  const std::vector<std::string> problems = ProblemsOf(config);
  if (!problems.empty())
    return absl::InvalidArgumentError(absl::StrCat(origin, ": ", absl::StrJoin(problems, "\n")));
  return config;
}

void SetTokenPath(const std::string& directory, v1::WorkerConfig* config) {
  config->set_enrolment_token_path(JoinPath(JoinPath(directory, "tokens"), config->name()));
}

}  // namespace

FleetPlace SharedPlace(const std::string& directory) {
  return {.directory = directory, .name = std::filesystem::path(directory).filename()};
}

std::string SalvageDirectory(const std::string& directory, const std::string& name) {
  return JoinPath(JoinPath(directory, "salvage"), name);
}

absl::StatusOr<v1::WorkerConfig> MakeSalvageConfig(const std::string& directory,
                                                   const std::string& name) {
  ASSIGN_OR_RETURN(v1::WorkerConfig config, LoadFleetConfig(directory, name));
  config.clear_munge();  // it is on no node of a job
  SetTokenPath(directory, &config);
  config.set_data_directory(SalvageDirectory(directory, name));
  // It starts no ranks, and the nodes' accounts and addresses need not be this host's.
  config.set_run_user("root");
  config.set_step_user("root");
  config.set_rendezvous_host("127.0.0.1");
  config.clear_stage_directory();
  ASSIGN_OR_RETURN(const std::string programs, ProgramDirectory());
  return WithDefaults(std::move(config), programs);
}

absl::StatusOr<SlurmTask> ReadSlurmTask() {
  SlurmTask task;
  ASSIGN_OR_RETURN(task.job, Variable("SLURM_JOB_ID"));
  ASSIGN_OR_RETURN(task.node_id, Variable("SLURM_NODEID"));
  ASSIGN_OR_RETURN(task.node, Variable("SLURMD_NODENAME"));
  return task;
}

absl::StatusOr<v1::WorkerConfig> MakeFleetConfig(const FleetPlace& place, const SlurmTask& task) {
  ASSIGN_OR_RETURN(v1::WorkerConfig config,
                   LoadFleetConfig(place.directory, absl::StrCat(place.name, "-", task.node_id)));
  if (!place.directory.empty() && !config.has_munge()) SetTokenPath(place.directory, &config);
  (*config.mutable_labels())["slurm_job"] = task.job;
  (*config.mutable_labels())["node"] = task.node;
  RETURN_IF_ERROR(MakeDirectories(config.data_directory()));
  std::string made =
      JoinPath(config.data_directory(), absl::StrCat("assay-", config.name(), "-XXXXXX"));
  if (mkdtemp(made.data()) == nullptr)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", made));
  config.set_data_directory(made);
  ASSIGN_OR_RETURN(const std::string programs, ProgramDirectory());
  return WithDefaults(std::move(config), programs);
}

absl::Status AwaitToken(const v1::WorkerConfig& config, absl::Duration patience) {
  for (absl::Duration waited; waited < patience; waited += kTokenPoll) {
    if (FileExists(config.enrolment_token_path())) return absl::OkStatus();
    absl::SleepFor(kTokenPoll);
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "no token in ", config.enrolment_token_path(), " for ", absl::FormatDuration(patience),
      ": does the coordinator run, and share that folder?"));
}

}  // namespace assay::agent
