// Slurm by its commands: sbatch, squeue, scancel.

#ifndef SERVER_LAUNCH_SLURM_COMMANDS_H_
#define SERVER_LAUNCH_SLURM_COMMANDS_H_

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "server/launch/slurm/slurm.h"

namespace assay::launch::slurm {

struct CommandOptions {
  std::string directory;    // of the commands; empty: where PATH has them
  std::string output_path;  // for what a command prints, until it is read
  std::string user;         // whose jobs are looked at; empty: this process's
  absl::Duration timeout = absl::Seconds(30);
};

// The arguments of sbatch for a job, after the program's name.
std::vector<std::string> SubmitArguments(const JobRequest& request);

class SlurmCommands final : public Slurm {
 public:
  explicit SlurmCommands(CommandOptions options);

  absl::StatusOr<std::vector<Job>> Jobs() override;
  absl::StatusOr<std::string> Submit(const JobRequest& request) override;
  absl::Status StopAgents(const std::string& job) override;
  absl::Status Cancel(const std::string& job) override;
  std::string FindEnd(const std::string& id, const std::string& name) override;
  // Whether sbatch would take a job with these options for one node; submits none.
  absl::Status Test(std::vector<std::string> options);

  // A command that runs is killed, and none is started any more. Thread-safe.
  void Stop() { is_stopped_ = true; }

 private:
  // Runs `program ARGUMENTS`; what it has printed. UNAVAILABLE with its last line if it fails.
  absl::StatusOr<std::string> Run(const std::string& program, std::vector<std::string> arguments);

  const CommandOptions options_;
  std::atomic<bool> is_stopped_ = false;
};

// The path of `program`: in `directory`, or where PATH has it. NOT_FOUND with the remedy.
absl::StatusOr<std::string> FindCommand(const std::string& directory, const std::string& program);

}  // namespace assay::launch::slurm

#endif  // SERVER_LAUNCH_SLURM_COMMANDS_H_
