#include "server/slurm_config.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "google/protobuf/text_format.h"

#include "common/file.h"
#include "common/secret.h"
#include "common/status.h"

namespace assay {
namespace {

constexpr int32_t kNodesDefault = 1024;
constexpr int32_t kAllocationsDefault = 16;
constexpr int32_t kMinutesDefault = 24 * 60;
constexpr int32_t kPollSecondsDefault = 10;
constexpr int32_t kPollSecondsMax = 60;

int32_t Or(int32_t value, int32_t otherwise) {
  return value > 0 ? value : otherwise;
}

// The same as long as the data directory lives, whatever becomes of the database in it.
absl::StatusOr<std::string> InstanceOf(const std::string& data_directory) {
  const std::string path = JoinPath(data_directory, "instance");
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (text.ok()) return std::string(absl::StripAsciiWhitespace(*text));
  if (!absl::IsNotFound(text.status())) return text.status();
  std::string instance = MakeUuid().substr(0, 8);
  RETURN_IF_ERROR(WriteFileAtomic(path, absl::StrCat(instance, "\n"), kPrivateFile));
  return instance;
}

// What all agents are told, as text.
std::string WorkerText(const v1::SlurmConfig& config) {
  v1::WorkerConfig worker = config.worker();
  worker.set_server_address(config.server_address());
  if (worker.data_directory().empty()) worker.set_data_directory("/tmp");
  std::string text;
  google::protobuf::TextFormat::PrintToString(worker, &text);
  return text;
}

}  // namespace

std::vector<std::string> SlurmProblems(const v1::ServerConfig& config) {
  const v1::SlurmConfig& slurm = config.launcher().slurm();
  std::vector<std::string> problems;
  if (slurm.shared_directory().empty())
    problems.push_back(
        "slurm.shared_directory: is empty: name a folder that the coordinator and all nodes share");
  if (slurm.server_address().empty())
    problems.push_back(
        "slurm.server_address: is empty: say by which host:port nodes reach this coordinator");
  const std::pair<const char*, int32_t> counts[] = {
      {"node_count_max", slurm.node_count_max()},
      {"allocation_count_max", slurm.allocation_count_max()},
      {"minutes_max", slurm.minutes_max()},
      {"poll_interval_s", slurm.poll_interval_s()}};
  for (const auto& [field, value] : counts)
    if (value < 0)
      problems.push_back(absl::StrCat("slurm.", field, ": is negative: give 0 for the default"));
  if (slurm.poll_interval_s() > kPollSecondsMax)
    problems.push_back(absl::StrCat("slurm.poll_interval_s: give at most ", kPollSecondsMax));
  for (const std::string& option : slurm.options())
    if (!absl::StartsWith(option, "--"))
      problems.push_back(
          absl::StrCat("slurm.options: \"", option, "\" is not of the form --name=value"));
  const v1::WorkerConfig& worker = slurm.worker();
  if (!worker.name().empty() || !worker.server_address().empty() ||
      !worker.ca_certificate_path().empty() || !worker.enrolment_token().empty() ||
      !worker.enrolment_token_path().empty())
    problems.push_back(
        "slurm.worker: leave out name, server_address, ca_certificate_path and enrolment_token: "
        "the coordinator fills them in");
  return problems;
}

absl::StatusOr<launch::slurm::SlurmOptions> SlurmOptionsOf(const v1::ServerConfig& config,
                                                           const std::string& worker_program) {
  const v1::SlurmConfig& slurm = config.launcher().slurm();
  launch::slurm::SlurmOptions options;
  ASSIGN_OR_RETURN(options.keeper.instance, InstanceOf(config.data_directory()));
  options.keeper.poll_soon = absl::Seconds(Or(slurm.poll_interval_s(), kPollSecondsDefault));
  options.commands.directory = slurm.command_directory();
  options.commands.output_path = JoinPath(config.data_directory(), "slurm.out");
  RETURN_IF_ERROR(MakeDirectories(slurm.shared_directory(), kPrivateDirectory));
  RETURN_IF_ERROR(MakeEntryPrivate(slurm.shared_directory()).status());
  options.folder.directory = slurm.shared_directory();
  options.folder.worker_program = worker_program;
  options.folder.worker_config = WorkerText(slurm);
  ASSIGN_OR_RETURN(options.folder.ca_pem, ReadFile(config.tls().ca_certificate_path()));
  options.folder.command_directory = slurm.command_directory();
  options.folder.options = {slurm.options().begin(), slurm.options().end()};
  options.folder.minutes_max = Or(slurm.minutes_max(), kMinutesDefault);
  return options;
}

core::LauncherStarted DescribeSlurm(const v1::SlurmConfig& config) {
  return {.launcher = "slurm",
          .allocation_count_max = Or(config.allocation_count_max(), kAllocationsDefault),
          .node_count_min = 1,
          .node_count_max = Or(config.node_count_max(), kNodesDefault),
          .is_per_submission = true,
          .lifetime_us_max = int64_t{Or(config.minutes_max(), kMinutesDefault)} * 60 * 1'000'000};
}

}  // namespace assay
