#include "server/slurm_config.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
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

int64_t Microseconds(int32_t minutes) {
  return int64_t{minutes} * 60 * 1'000'000;
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

// What sbatch is told beside the facts of an allocation.
launch::slurm::JobProfile ProfileOf(const v1::SlurmConfig& config,
                                    const v1::SlurmProfile& profile) {
  launch::slurm::JobProfile job{
      .options = {config.options().begin(), config.options().end()},
      .accounts = {profile.accounts().begin(), profile.accounts().end()},
      .minutes_max = Or(profile.minutes_max(), Or(config.minutes_max(), kMinutesDefault))};
  const std::pair<const char*, const std::string&> values[] = {
      {"partition", profile.partition()},
      {"account", profile.account()},
      {"qos", profile.qos()},
      {"constraint", profile.constraint()},
      {"gres", profile.gres()},
      {"reservation", profile.reservation()}};
  for (const auto& [name, value] : values)
    if (!value.empty()) job.options.push_back(absl::StrCat("--", name, "=", value));
  job.options.insert(job.options.end(), profile.options().begin(), profile.options().end());
  return job;
}

// All profiles by name, and that of jobs that name none.
std::map<std::string, launch::slurm::JobProfile> ProfilesOf(const v1::SlurmConfig& config) {
  std::map<std::string, launch::slurm::JobProfile> profiles;
  profiles[""] = ProfileOf(config, {});
  for (const v1::SlurmProfile& profile : config.profiles())
    profiles[profile.name()] = ProfileOf(config, profile);
  return profiles;
}

using Counts = std::vector<std::pair<std::string, int32_t>>;
using Options = google::protobuf::RepeatedPtrField<std::string>;

void CheckNumbersAndOptions(const std::string& field, const Counts& counts, const Options& options,
                            std::vector<std::string>* problems) {
  for (const auto& [name, value] : counts)
    if (value < 0)
      problems->push_back(absl::StrCat(field, ".", name, ": is negative: give 0 for the default"));
  for (const std::string& option : options)
    if (!absl::StartsWith(option, "--"))
      problems->push_back(
          absl::StrCat(field, ".options: \"", option, "\" is not of the form --name=value"));
}

void CheckProfiles(const v1::SlurmConfig& slurm, std::vector<std::string>* problems) {
  std::set<std::string> names;
  for (const v1::SlurmProfile& profile : slurm.profiles()) {
    if (profile.name().empty())
      problems->push_back("slurm.profiles: a name is empty: say by which entries choose it");
    if (!names.insert(profile.name()).second)
      problems->push_back(absl::StrCat("slurm.profiles: there are two of the name ", profile.name(),
                                       ": rename one"));
    CheckNumbersAndOptions("slurm.profiles",
                           {{"node_count_max", profile.node_count_max()},
                            {"allocation_count_max", profile.allocation_count_max()},
                            {"minutes_max", profile.minutes_max()}},
                           profile.options(), problems);
  }
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
  CheckNumbersAndOptions("slurm",
                         {{"node_count_max", slurm.node_count_max()},
                          {"allocation_count_max", slurm.allocation_count_max()},
                          {"minutes_max", slurm.minutes_max()},
                          {"poll_interval_s", slurm.poll_interval_s()}},
                         slurm.options(), &problems);
  CheckProfiles(slurm, &problems);
  if (slurm.poll_interval_s() > kPollSecondsMax)
    problems.push_back(absl::StrCat("slurm.poll_interval_s: give at most ", kPollSecondsMax));
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
  options.folder.profiles = ProfilesOf(slurm);
  return options;
}

std::vector<std::string> SlurmWarnings(const v1::SlurmConfig& config) {
  std::vector<std::string> warnings;
  std::string folder = (std::filesystem::temp_directory_path() / "assayd-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return {absl::StrCat("cannot make ", folder)};
  launch::slurm::SlurmCommands commands(
      {.directory = config.command_directory(), .output_path = JoinPath(folder, "out")});
  const auto test = [&](const std::string& field, const std::vector<std::string>& options) {
    const absl::Status status = commands.Test(options);
    if (!status.ok()) warnings.push_back(absl::StrCat(field, ": ", status.message()));
  };
  for (const auto& [name, profile] : ProfilesOf(config)) {
    const std::string field =
        name.empty() ? "launcher.slurm" : absl::StrCat("launcher.slurm.profiles \"", name, "\"");
    std::vector<std::string> options = profile.options;
    options.push_back(absl::StrCat("--time=", profile.minutes_max));
    test(field, options);
    options.emplace_back();
    for (const auto& [organization, account] : profile.accounts) {
      options.back() = absl::StrCat("--account=", account);
      test(absl::StrCat(field, ".accounts \"", organization, "\""), options);
    }
  }
  static_cast<void>(RemoveTree(folder));
  return warnings;
}

core::LauncherStarted DescribeSlurm(const v1::SlurmConfig& config) {
  core::LauncherStarted started = {
      .launcher = "slurm",
      .allocation_count_max = Or(config.allocation_count_max(), kAllocationsDefault),
      .node_count_min = 1,
      .node_count_max = Or(config.node_count_max(), kNodesDefault),
      .is_per_submission = true,
      .lifetime_us_max = Microseconds(Or(config.minutes_max(), kMinutesDefault))};
  for (const v1::SlurmProfile& profile : config.profiles())
    started.profiles.push_back(
        {.name = profile.name(),
         .node_count_max = Or(profile.node_count_max(), started.node_count_max),
         .lifetime_us_max = profile.minutes_max() > 0 ? Microseconds(profile.minutes_max())
                                                      : started.lifetime_us_max,
         .allocation_count_max = profile.allocation_count_max(),
         .is_preemptible = profile.is_preemptible()});
  return started;
}

}  // namespace assay
