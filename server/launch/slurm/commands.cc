#include "server/launch/slurm/commands.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/file.h"
#include "common/process.h"
#include "common/status.h"

namespace assay::launch::slurm {
namespace {

std::string LastLine(const std::string& text) {
  const std::vector<std::string> lines =
      absl::StrSplit(absl::StripAsciiWhitespace(text), '\n', absl::SkipWhitespace());
  return lines.empty() ? "" : lines.back();
}

std::string UserName() {
  std::array<char, 4096> buffer;
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return entry.pw_name;
  return absl::StrCat(geteuid());
}

}  // namespace

absl::StatusOr<std::string> FindCommand(const std::string& directory, const std::string& program) {
  const char* const path = std::getenv("PATH");
  const std::string folders = !directory.empty() ? directory
                              : path != nullptr  ? path
                                                 : "/usr/local/bin:/usr/bin:/bin";
  for (const absl::string_view folder : absl::StrSplit(folders, ':', absl::SkipEmpty())) {
    std::string file = JoinPath(std::string(folder), program);
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return absl::NotFoundError(
      absl::StrCat("cannot run ", program, " of ", folders,
                   ": install Slurm's commands there (Debian: slurm-client), or name their folder "
                   "in launcher.slurm.command_directory"));
}

std::vector<std::string> SubmitArguments(const JobRequest& request) {
  std::vector<std::string> arguments = {"--parsable",
                                        absl::StrCat("--job-name=", request.name),
                                        absl::StrCat("--comment=", request.comment),
                                        "--dependency=singleton",
                                        absl::StrCat("--nodes=", request.node_count),
                                        "--ntasks-per-node=1",
                                        "--exclusive",
                                        "--no-kill",
                                        "--no-requeue",
                                        "--export=NONE",
                                        absl::StrCat("--time=", request.minutes),
                                        absl::StrCat("--chdir=", request.directory),
                                        absl::StrCat("--output=", request.output_path)};
  arguments.insert(arguments.end(), request.options.begin(), request.options.end());
  arguments.push_back(request.script_path);
  return arguments;
}

SlurmCommands::SlurmCommands(CommandOptions options) : options_(std::move(options)) {}

absl::StatusOr<std::string> SlurmCommands::Run(const std::string& program,
                                               std::vector<std::string> arguments) {
  ASSIGN_OR_RETURN(const std::string path, FindCommand(options_.directory, program));
  if (is_stopped_) return absl::CancelledError("the daemon ends");
  RETURN_IF_ERROR(WriteFileAtomic(options_.output_path, "", kPrivateFile));
  arguments.insert(arguments.begin(), path);
  const absl::StatusOr<int> code = RunToEnd({.argv = std::move(arguments),
                                             .environment = {"SLURM_TIME_FORMAT=%s", "LC_ALL=C"},
                                             .output_path = options_.output_path},
                                            options_.timeout, is_stopped_);
  if (absl::IsDeadlineExceeded(code.status()) || absl::IsCancelled(code.status()))
    return absl::UnavailableError(absl::StrCat(program, " ", code.status().message()));
  RETURN_IF_ERROR(code.status());
  ASSIGN_OR_RETURN(std::string text, ReadFile(options_.output_path, int64_t{1} << 30));
  if (*code == 0) return text;
  const std::string words = LastLine(text);
  return absl::UnavailableError(
      absl::StrCat(words.empty() ? program : words, " (", program, ", exit code ", *code, ")"));
}

absl::StatusOr<std::vector<Job>> SlurmCommands::Jobs() {
  ASSIGN_OR_RETURN(
      const std::string text,
      Run("squeue", {"--noheader", "--states=all",
                     absl::StrCat("--user=", options_.user.empty() ? UserName() : options_.user),
                     absl::StrCat("--format=", kJobFormat)}));
  return ParseJobs(text);
}

absl::StatusOr<std::string> SlurmCommands::Submit(const JobRequest& request) {
  ASSIGN_OR_RETURN(const std::string text, Run("sbatch", SubmitArguments(request)));
  std::optional<std::string> id = ParseJobId(text);
  if (!id.has_value())
    return absl::UnavailableError(absl::StrCat("sbatch names no job: ", LastLine(text)));
  return *std::move(id);
}

absl::Status SlurmCommands::Test(std::vector<std::string> options) {
  std::vector<std::string> arguments = {"--test-only", "--nodes=1", "--exclusive",
                                        "--ntasks-per-node=1", "--export=NONE"};
  std::move(options.begin(), options.end(), std::back_inserter(arguments));
  arguments.emplace_back("--wrap=true");
  return Run("sbatch", std::move(arguments)).status();
}

absl::Status SlurmCommands::StopAgents(const std::string& job) {
  return Run("scancel", {"--signal=TERM", absl::StrCat(job, ".0")}).status();
}

absl::Status SlurmCommands::Cancel(const std::string& job) {
  return Run("scancel", {job}).status();
}

std::string SlurmCommands::FindEnd(const std::string& id, const std::string& name) {
  const absl::StatusOr<std::string> text =
      Run("sacct", {"--noheader", "--parsable2", "--allocations", absl::StrCat("--jobs=", id),
                    "--format=JobID,JobName,State"});
  return text.ok() ? ParseEnd(*text, id, name) : "";
}

}  // namespace assay::launch::slurm
