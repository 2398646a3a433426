#include "worker/agent/workload/launcher.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/file.h"
#include "common/program_contract.h"
#include "common/status.h"

namespace assay::agent {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Slurm starts agents without one.
std::string SearchPath() {
  std::string path = Variable("PATH");
  return path.empty() ? kDefaultPath : path;
}

bool IsInPath(const std::string& program) {
  const std::vector<std::string> folders = absl::StrSplit(SearchPath(), ':', absl::SkipEmpty());
  return std::any_of(folders.begin(), folders.end(), [&program](const std::string& folder) {
    return access(JoinPath(folder, program).c_str(), X_OK) == 0;
  });
}

bool IsInSlurm() {
  return !Variable("SLURM_JOB_ID").empty();
}

// By the names that the batch system has for the nodes, if it has.
std::string HostFile(const v1::RunSpec& spec) {
  const bool has_names = spec.node_names_size() == spec.node_count();
  std::string text;
  for (const std::string& host : has_names ? spec.node_names() : spec.hosts())
    for (int i = 0; i < spec.ranks_per_node(); ++i)
      absl::StrAppend(&text, host, "\n");
  return text;
}

std::vector<std::string> SrunWords(const v1::RunSpec& spec, const std::string& host_file) {
  // The order of the file, and no other of this job's options, says which rank is where. A rank
  // that fails ends all.
  return {"srun",
          "--overlap",
          "--overcommit",
          "--mpi=pmix",
          "--distribution=arbitrary",
          absl::StrCat("--nodelist=", host_file),
          absl::StrCat("--nodes=", spec.node_count()),
          absl::StrCat("--ntasks=", spec.node_count() * spec.ranks_per_node()),
          "--kill-on-bad-exit=1",
          "--wait=0",
          "--export=ALL"};
}

std::vector<std::string> MpirunWords(const v1::RunSpec& spec, const std::string& host_file) {
  // Slurm's order of nodes is not the gang's: seq takes a line of the file for each rank. Elsewhere
  // the file is all that mpirun knows, and slots are taken in its order; seq knows no addresses.
  // Steps pin ranks, as the node's configuration says.
  return {"mpirun",
          "--hostfile",
          host_file,
          "-np",
          absl::StrCat(spec.node_count() * spec.ranks_per_node()),
          "--map-by",
          IsInSlurm() ? "seq" : "slot",
          "--bind-to",
          "none"};
}

// Added to this process's environment.
std::vector<std::string> LauncherEnvironment(const v1::RunSpec& spec) {
  std::vector<std::string> variables = {absl::StrCat("PATH=", SearchPath())};
  if (geteuid() == 0) {
    variables.emplace_back("OMPI_ALLOW_RUN_AS_ROOT=1");
    variables.emplace_back("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
  }
  if (!IsInSlurm()) return variables;
  // What mpirun starts its daemons by is a srun too, and takes from here what it is not told: this
  // agent's own step has one task a node, which is not what a node has room for.
  int node_count = spec.node_count();
  static_cast<void>(absl::SimpleAtoi(Variable("SLURM_JOB_NUM_NODES"), &node_count));
  variables.emplace_back("SLURM_OVERLAP=1");
  variables.emplace_back("SLURM_EXPORT_ENV=ALL");
  variables.push_back(
      absl::StrCat("SLURM_TASKS_PER_NODE=", spec.ranks_per_node(), "(x", node_count, ")"));
  variables.push_back(absl::StrCat("SLURM_NTASKS_PER_NODE=", spec.ranks_per_node()));
  return variables;
}

}  // namespace

absl::Status CheckLauncher(const v1::RunSpec& spec, const v1::WorkerConfig& worker) {
  const std::string& launcher = spec.command().launcher();
  if (launcher == kSrun && (!IsInSlurm() || spec.node_names().empty()))
    return absl::FailedPreconditionError(
        "launcher \"srun\" starts programs in a Slurm job only, and this node's agent is in none: "
        "submit to a fleet of Slurm's, or choose \"mpirun\"");
  if (launcher == kSrun && geteuid() == 0 && worker.run_user() != "root")
    return absl::FailedPreconditionError(
        "launcher \"srun\": Slurm lets the job's own account start its steps, and run_user gives "
        "ranks another one: let agents of Slurm jobs not be root, or set run_user: \"root\"");
  if (IsInPath(launcher)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "launcher \"", launcher, "\" is not in the PATH of this node's agent: install ",
      launcher == kSrun ? "Slurm's commands" : "Open MPI", ", or add its folder to that PATH"));
}

RankCommand LauncherCommand(const v1::RunSpec& spec, const StartContext& context,
                            const std::string& host_file, const std::string& output_path) {
  RankCommand command{.rank = kLauncherRank,
                      .argv = spec.command().launcher() == kSrun ? SrunWords(spec, host_file)
                                                                 : MpirunWords(spec, host_file),
                      .environment = LauncherEnvironment(spec),
                      .working_directory = "/",  // it is the same on all nodes
                      .output_path = output_path,
                      .inputs = {{host_file, HostFile(spec)}}};
  for (const std::string& word : {context.enter_program, std::string("enter"),
                                  context.entrance_name, absl::StrCat(spec.ranks_per_node())})
    command.argv.push_back(word);
  return command;
}

}  // namespace assay::agent
