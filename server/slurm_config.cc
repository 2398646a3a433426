#include "server/slurm_config.h"

#include <unistd.h>

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
#include "common/munge/munge.h"
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

bool IsByMunge(const v1::SlurmConfig& config) {
  return config.enrolment() == v1::SlurmConfig::MUNGE;
}

// On the nodes.
std::string NodeDirectoryOf(const v1::SlurmConfig& config) {
  const std::string& named = config.worker().data_directory();
  return named.empty() ? "/tmp" : named;
}

// What all agents are told, as text.
std::string WorkerText(const v1::SlurmConfig& config) {
  v1::WorkerConfig worker = config.worker();
  worker.set_server_address(config.server_address());
  if (IsByMunge(config)) {
    worker.mutable_munge()->set_socket(config.munge_socket());
    worker.mutable_munge()->set_coordinator_uid(geteuid());
  }
  worker.set_data_directory(NodeDirectoryOf(config));
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

void CheckEnrolment(const v1::SlurmConfig& slurm, std::vector<std::string>* problems) {
  if (slurm.shared_directory().empty() && !IsByMunge(slurm))
    problems->push_back(
        "slurm.shared_directory: is empty: name a folder that the coordinator and all nodes share, "
        "or, where there is none, let agents enrol by munge (enrolment: MUNGE)");
  const auto check_absolute = [problems](const char* field, const std::string& path) {
    if (!path.empty() && path[0] != '/')
      problems->push_back(absl::StrCat(field, ": \"", path, "\" is not an absolute path"));
  };
  check_absolute("slurm.shared_directory", slurm.shared_directory());
  check_absolute("slurm.munge_socket", slurm.munge_socket());
  if (!slurm.munge_socket().empty() && !IsByMunge(slurm))
    problems->push_back("slurm.munge_socket: is for enrolment: MUNGE, which is not set");
}

// A round trip through munged on this host; empty: it works.
std::string MungeWarning(const v1::SlurmConfig& config) {
  const absl::StatusOr<std::string> credential =
      MungeEncode(config.munge_socket(), geteuid(), "assay check");
  const absl::Status status = credential.ok()
                                  ? MungeDecode(config.munge_socket(), *credential).status()
                                  : credential.status();
  return status.ok() ? "" : absl::StrCat("launcher.slurm.enrolment: ", status.message());
}

}  // namespace

std::vector<std::string> SlurmProblems(const v1::ServerConfig& config) {
  const v1::SlurmConfig& slurm = config.launcher().slurm();
  std::vector<std::string> problems;
  CheckEnrolment(slurm, &problems);
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
      !worker.enrolment_token_path().empty() || !worker.ca_certificate().empty() ||
      worker.has_munge())
    problems.push_back(
        "slurm.worker: leave out name, server_address, ca_certificate_path, ca_certificate, munge "
        "and enrolment_token: the coordinator fills them in");
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
  launch::slurm::JobDirectoryOptions& folder = options.folder;
  folder.is_shared = !slurm.shared_directory().empty();
  folder.is_by_munge = IsByMunge(slurm);
  folder.node_directory = NodeDirectoryOf(slurm);
  folder.directory =
      folder.is_shared ? slurm.shared_directory() : JoinPath(config.data_directory(), "jobs");
  RETURN_IF_ERROR(MakeDirectories(folder.directory, kPrivateDirectory));
  RETURN_IF_ERROR(MakeEntryPrivate(folder.directory).status());
  folder.worker_program = worker_program;
  folder.worker_config = WorkerText(slurm);
  ASSIGN_OR_RETURN(folder.ca_pem, ReadFile(config.tls().ca_certificate_path()));
  folder.command_directory = slurm.command_directory();
  folder.profiles = ProfilesOf(slurm);
  return options;
}

std::vector<std::string> SlurmWarnings(const v1::SlurmConfig& config) {
  std::vector<std::string> warnings;
  if (IsByMunge(config)) {
    if (std::string warning = MungeWarning(config); !warning.empty())
      warnings.push_back(std::move(warning));
  }
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

std::unique_ptr<api::NodeEnrolment> MakeNodeEnrolment(const v1::ServerConfig& config) {
  const v1::SlurmConfig& slurm = config.launcher().slurm();
  if (config.launcher().kind() != "slurm" || !IsByMunge(slurm)) return nullptr;
  return std::make_unique<api::NodeEnrolment>(api::NodeEnrolmentOptions{
      .uid = geteuid(),
      .open = [socket = slurm.munge_socket()](
                  const std::string& credential) { return MungeDecode(socket, credential); },
      .addresses_of = api::AddressesOf});
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
