#include "worker/agent/check_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"
#include "worker/agent/preflight/preflight.h"
#include "worker/agent/workload/cores.h"

namespace assay::agent {
namespace {

PreflightFlags FlagsOf(const v1::PreflightSpec& spec, const v1::WorkerConfig& config,
                       const std::string& output_path) {
  PreflightFlags flags{.cores = {config.cores().begin(), config.cores().end()},
                       .is_json = true,
                       .output_path = output_path};
  // What this version does not know the coordinator finds missing.
  for (const std::string& known : PreflightChecks())
    for (const std::string& asked : spec.checks())
      if (asked == known) flags.checks.push_back(known);
  if (spec.time_limit().seconds() > 0)
    flags.time_limit = absl::Seconds(spec.time_limit().seconds());
  CheckOptions& options = flags.options;
  options.thread_count = ThreadsPerRank(config, 1);
  options.trainer_program = config.trainer_program();
  for (const auto& [name, value] : config.trainer_environment())
    options.trainer_environment.push_back(absl::StrCat(name, "=", value));
  options.dataset_directory = spec.dataset_path();
  options.stage_directory = config.stage_directory();
  options.is_staged = spec.is_staged();
  return flags;
}

}  // namespace

CheckProcess::CheckProcess(v1::WorkerConfig config, std::string program)
    : config_(std::move(config)), program_(std::move(program)) {}

std::string CheckProcess::OutputPath() const {
  return JoinPath(config_.data_directory(), "preflight.json");
}

std::string CheckProcess::FabricSpecPath() const {
  return JoinPath(config_.data_directory(), "fabric.spec");
}

void CheckProcess::Start(int64_t number, const v1::PreflightSpec& spec, int listener_fd) {
  Stop();
  number_ = number;
  spec_ = spec;
  const absl::Status status = Spawn(listener_fd);
  if (status.ok()) return;
  LOG(ERROR) << "pre-flight " << number << " cannot start: " << status;
  failed_start_ = EndWith(absl::StrCat("the pre-flight could not start: ", status.message()));
}

absl::StatusOr<SpawnOptions> CheckProcess::NodeCommand() const {
  SpawnOptions command{.argv = {program_, kPreflightMode}};
  for (std::string& argument : ArgumentsOf(FlagsOf(spec_, config_, OutputPath())))
    command.argv.push_back(std::move(argument));
  return command;
}

// The token is nobody else's to see, so that it stands in a file and not in the arguments.
absl::StatusOr<SpawnOptions> CheckProcess::FabricCommand(int listener_fd) const {
  v1::FabricSpec fabric = spec_.fabric();
  const bool has_listener = fabric.rank() == 0 && listener_fd >= 0;
  if (has_listener) fabric.set_rendezvous_listener(kInheritedFd);
  fabric.set_is_rank_network_trusted(config_.is_rank_network_trusted());
  RETURN_IF_ERROR(WriteFileAtomic(FabricSpecPath(), fabric.SerializeAsString(), kPrivateFile));
  SpawnOptions command{
      .argv = {config_.trainer_program(), "--fabric", FabricSpecPath(), OutputPath()},
      .inherited_fd = has_listener ? listener_fd : -1};
  for (const auto& [name, value] : config_.trainer_environment())
    command.environment.push_back(absl::StrCat(name, "=", value));
  return command;
}

absl::Status CheckProcess::Spawn(int listener_fd) {
  RETURN_IF_ERROR(RemoveTree(OutputPath()));
  ASSIGN_OR_RETURN(const SpawnOptions command,
                   spec_.has_fabric() ? FabricCommand(listener_fd) : NodeCommand());
  ASSIGN_OR_RETURN(process_, assay::Spawn(command));
  exit_fd_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, process_.pid, 0)));
  LOG(INFO) << "pre-flight " << number_ << " begins";
  if (exit_fd_.is_open()) return absl::OkStatus();
  const absl::Status status = absl::ErrnoToStatus(errno, "pidfd_open");
  StopGroup(process_, absl::ZeroDuration()).IgnoreError();
  return status;
}

void CheckProcess::Stop() {
  failed_start_.reset();
  if (number_ == 0) return;
  number_ = 0;
  if (!exit_fd_.is_open()) return;
  exit_fd_.Reset();
  SignalGroup(process_, SIGKILL).IgnoreError();
  StopGroup(process_, absl::ZeroDuration()).IgnoreError();
}

std::optional<CheckEnded> CheckProcess::TakeEnd() {
  if (failed_start_.has_value()) return std::exchange(failed_start_, std::nullopt);
  pollfd entry{exit_fd_.get(), POLLIN, 0};
  if (number_ == 0 || poll(&entry, 1, 0) != 1) return std::nullopt;
  exit_fd_.Reset();
  const absl::StatusOr<int> code = WaitForExit(process_, absl::Seconds(10));
  SignalGroup(process_, SIGKILL).IgnoreError();  // what it has left behind
  const absl::StatusOr<v1::PreflightReport> report = ReadReport();
  if (!report.ok())
    return EndWith(
        absl::StrCat("the pre-flight has ended with ", code.value_or(-1), " and left no numbers"));
  LOG(INFO) << "pre-flight " << number_ << " is done";
  return CheckEnded{std::exchange(number_, 0), report->SerializeAsString()};
}

absl::StatusOr<v1::PreflightReport> CheckProcess::ReadReport() const {
  ASSIGN_OR_RETURN(const std::string output, ReadFile(OutputPath()));
  v1::PreflightReport report;
  if (spec_.has_fabric()) {
    if (!report.mutable_fabric()->ParseFromString(output))
      return absl::InvalidArgumentError("what the fabric's check has left is not its report");
    return report;
  }
  ASSIGN_OR_RETURN(const std::vector<CheckResult> results, ParsePreflightJson(output));
  for (const CheckResult& result : results) {
    v1::NodeCheck* const check = report.add_checks();
    check->set_check(result.check);
    check->set_is_measured(result.is_measured);
    check->set_value(result.value);
    check->set_unit(result.unit);
    check->set_detail(result.detail);
    check->set_problem(result.problem);
  }
  return report;
}

CheckEnded CheckProcess::EndWith(const std::string& problem) {
  v1::PreflightReport report;
  for (const std::string& asked : spec_.checks()) {
    v1::NodeCheck* const check = report.add_checks();
    check->set_check(asked);
    check->set_problem(problem);
  }
  return {std::exchange(number_, 0), report.SerializeAsString()};
}

}  // namespace assay::agent
