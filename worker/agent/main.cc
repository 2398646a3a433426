// assay-worker: the agent of one node, and the step that it starts for each run.

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/process.h"
#include "common/secret.h"
#include "common/status.h"
#include "worker/agent/account.h"
#include "worker/agent/agent.h"
#include "worker/agent/cache_command.h"
#include "worker/agent/cache_work.h"
#include "worker/agent/config.h"
#include "worker/agent/connection_keeper.h"
#include "worker/agent/control_group.h"
#include "worker/agent/enrolment.h"
#include "worker/agent/entrance.h"
#include "worker/agent/fleet.h"
#include "worker/agent/gate.h"
#include "worker/agent/inventory.h"
#include "worker/agent/preflight/preflight.h"
#include "worker/agent/program_port.h"
#include "worker/agent/rendezvous_listener.h"
#include "worker/agent/salvage.h"
#include "worker/agent/step.h"
#include "worker/agent/step_process.h"

namespace assay::agent {
namespace {

constexpr char kUsage[] =
    R"(Usage: assay-worker --config=FILE [--check_config]   run the agent of this node
       assay-worker fleet DIRECTORY                     run the agent of a node of a Slurm job (srun starts this)
       assay-worker fleet - NAME                        the same without a shared directory, told on standard input
       assay-worker salvage DIRECTORY NAME              deliver what that agent left (the coordinator starts this)
       assay-worker preflight [--help] [--json] ...     check this node and print what it can do
       assay-worker cache [--help] ...                  the datasets that this node keeps between runs
       assay-worker cache-work DIRECTORY                look at them, or carry out an order (the agent starts this)
       assay-worker step DIRECTORY                      carry out one run (the agent starts this)
       assay-worker rank ACCOUNT PROGRAM ARGUMENT...    become one rank (the step starts this)
       assay-worker gate PID FILE KIND DIRECTORY...     hold the first reader of a run (the step starts this)
       assay-worker enter NAME RANKS_PER_NODE           take part in a run (its srun or mpirun starts this)
       assay-worker --version | --help

FILE is a text proto (assay.v1.WorkerConfig). --check_config reads and judges it, and ends: 0 if it
is good, 2 if not. SIGTERM lets the agent leave in order; a run that executes goes on and is taken up
by the next agent. If the run's step gets SIGTERM as well, its end is delivered first, within 20 s; a
second signal, a second or more after the first, ends the agent at once.
)";

constexpr int kExitUsage = 2;

// In a job that runs, until the coordinator lets its agents enrol: it looks every 10 s, and gives
// nodes up whose agents have not come after 5 min.
constexpr absl::Duration kTokenPatience = absl::Minutes(6);

// For what a job's agent could not deliver, once the coordinator is there again.
constexpr absl::Duration kSalvagePatience = absl::Minutes(10);

// For the step of this node, which may have to clear large caches first.
constexpr absl::Duration kEnterPatience = absl::Minutes(10);

// Why the agent runs.
struct Mission {
  bool is_fleet = false;          // for the time of a job
  bool is_salvage = false;        // only to deliver what its directory holds
  std::string salvage_directory;  // of what it cannot deliver; empty: none
};

struct Flags {
  std::string config_path;
  bool is_check = false;
};

absl::StatusOr<Flags> ParseFlags(const std::vector<std::string>& arguments) {
  Flags flags;
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::string_view value = arguments[i];
    if (value == "--check_config") {
      flags.is_check = true;
    } else if (value == "--config" && i + 1 < arguments.size()) {
      flags.config_path = arguments[++i];
    } else if (absl::ConsumePrefix(&value, "--config=")) {
      flags.config_path = std::string(value);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("unknown argument ", arguments[i]));
    }
  }
  if (flags.config_path.empty()) return absl::InvalidArgumentError("--config is missing");
  return flags;
}

// Blocked in every thread, so that only the loop sees them.
absl::StatusOr<UniqueFd> StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return absl::ErrnoToStatus(errno, "sigprocmask");
  UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, "signalfd");
  return fd;
}

// Two agents over one directory would both think that they own its steps.
absl::StatusOr<UniqueFd> LockDataDirectory(const std::string& directory, bool may_wait) {
  RETURN_IF_ERROR(MakeDirectories(directory));
  const std::string path = JoinPath(directory, "lock");
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kPrivateFile));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  if (flock(fd.get(), may_wait ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("another agent works in ", directory, ": stop it, or name another directory"));
  }
  return fd;
}

// One agent, as long as its certificate serves.
absl::StatusOr<AgentEnd> RunOneAgent(const v1::WorkerConfig& config, const Endpoint& endpoint,
                                     const Inventory& inventory, const RendezvousListener& listener,
                                     const ProgramPort& program_port, const Mission& mission,
                                     int stop_fd, const Clock& clock) {
  ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, MakeChannel(endpoint));
  const ConnectionKeeper keeper(channel);
  const std::unique_ptr<v1::WorkerService::Stub> stub = v1::WorkerService::NewStub(channel);
  ASSIGN_OR_RETURN(const std::string directory, ProgramDirectory());
  AgentOptions options{.config = config,
                       .step_program = JoinPath(directory, "assay-worker"),
                       .incarnation = MakeUuid(),
                       .version = ASSAY_VERSION,
                       .salvage_directory = mission.salvage_directory,
                       .ends_with_lease = mission.is_fleet};
  if (mission.is_salvage) options.deliver_timeout = kSalvagePatience;
  options.capabilities = CapabilitiesOf(
      inventory, config, absl::StrCat(config.rendezvous_host(), ":", listener.port()));
  options.capabilities.set_program_port(program_port.port());
  options.rendezvous_listener_fd = listener.fd();
  options.system_description_json = SystemDescriptionJson(inventory);
  options.renew_at = RenewalTime(endpoint, clock);
  LOG(INFO) << "agent starts worker=" << config.name() << " server=" << endpoint.target
            << " backends=" << inventory.backends.size();
  return Agent(std::move(options), endpoint, stub.get(), &clock).Run(stop_fd);
}

absl::Status RunAgent(const v1::WorkerConfig& config, const Mission& mission = {}) {
  ASSIGN_OR_RETURN(const UniqueFd signals, StopSignals());
  // It leaves as soon as it has come, having delivered what there is.
  if (mission.is_salvage) kill(getpid(), SIGTERM);
  ASSIGN_OR_RETURN(const UniqueFd lock,
                   LockDataDirectory(config.data_directory(), mission.is_salvage));
  ASSIGN_OR_RETURN(const std::optional<Account> user, FindRunUser(config));
  ASSIGN_OR_RETURN(const std::optional<Account> step_user, FindStepUser(config, user));
  const auto name = [](const std::optional<Account>& account) {
    return account.has_value() ? account->name : std::string("this process's account");
  };
  LOG(INFO) << "ranks run as " << name(user) << ", steps as " << name(step_user);
  RETURN_IF_ERROR(CloseDataDirectory(config, user));
  const RealClock clock;
  ASSIGN_OR_RETURN(const RendezvousListener listener,
                   RendezvousListener::Open(config.rendezvous_host()));
  ASSIGN_OR_RETURN(const ProgramPort program_port, ProgramPort::Open());
  const Inventory inventory = Probe(config);
  AgentEnd end = AgentEnd::kRenewalIsDue;
  while (end != AgentEnd::kStopped) {
    ASSIGN_OR_RETURN(const Endpoint endpoint, end == AgentEnd::kCertificateRefused
                                                  ? EnrolAgain(config)
                                                  : LoadOrEnrol(config, clock));
    // It serves once: nobody shall find it.
    if (mission.is_fleet && !config.enrolment_token_path().empty())
      RETURN_IF_ERROR(RemoveTree(config.enrolment_token_path()));
    ASSIGN_OR_RETURN(end, RunOneAgent(config, endpoint, inventory, listener, program_port, mission,
                                      signals.get(), clock));
  }
  return absl::OkStatus();
}

// True if runs have not been delivered.
bool HoldsRuns(const v1::WorkerConfig& config) {
  const absl::StatusOr<std::vector<std::string>> left =
      ListDirectory(JoinPath(config.data_directory(), "runs"));
  return left.ok() && !left->empty();
}

// One agent for the time of a job. What it could not deliver is left for the coordinator.
absl::Status RunInFleet(const FleetPlace& place) {
  ASSIGN_OR_RETURN(const SlurmTask task, ReadSlurmTask());
  ASSIGN_OR_RETURN(const v1::WorkerConfig config, MakeFleetConfig(place, task));
  // Before signals are kept for the agent: who waits here shall end by one.
  RETURN_IF_ERROR(config.has_munge() ? LoadOrEnrol(config, RealClock()).status()
                                     : AwaitToken(config, kTokenPatience));
  const bool has_salvage = !place.directory.empty();
  const std::string salvage =
      has_salvage ? SalvageDirectory(place.directory, config.name()) : std::string();
  RETURN_IF_ERROR(RunAgent(config, {.is_fleet = true, .salvage_directory = salvage}));
  if (!HoldsRuns(config)) {
    if (has_salvage) RETURN_IF_ERROR(RemoveTree(salvage));
  } else if (has_salvage && IsAllSalvaged(config.data_directory(), salvage)) {
    LOG(WARNING) << "undelivered runs are left in " << salvage;
  } else {
    LOG(WARNING) << "undelivered runs stay in " << config.data_directory();
    return absl::OkStatus();
  }
  return RemoveTree(config.data_directory());
}

// The place of a job that the arguments name; nullopt: they say another thing.
std::optional<FleetPlace> PlaceIn(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0] != "fleet") return std::nullopt;
  if (arguments.size() == 2) return SharedPlace(arguments[1]);
  if (arguments.size() == 3 && arguments[1] == "-") return FleetPlace{.name = arguments[2]};
  return std::nullopt;
}

// An agent that has gone delivers what it had to leave, from the coordinator's host.
absl::Status Salvage(const std::string& directory, const std::string& name) {
  ASSIGN_OR_RETURN(const v1::WorkerConfig config, MakeSalvageConfig(directory, name));
  RETURN_IF_ERROR(RunAgent(config, {.is_fleet = true, .is_salvage = true}));
  if (HoldsRuns(config))
    return absl::UnavailableError(
        absl::StrCat("not all of ", config.data_directory(), " could be delivered"));
  return RemoveTree(config.data_directory());
}

// 0: no check has found a problem; 1: one has.
int CheckNode(const std::vector<std::string>& arguments) {
  if (arguments.size() == 1 && arguments[0] == "--help") {
    std::cout << kPreflightUsage;
    return EXIT_SUCCESS;
  }
  const absl::StatusOr<PreflightFlags> flags = ParsePreflightFlags(arguments);
  if (!flags.ok()) {
    std::cerr << "assay-worker preflight: " << flags.status().message() << "\n" << kPreflightUsage;
    return kExitUsage;
  }
  // The agent's, which starts another one when it comes back.
  if (!flags->output_path.empty()) prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::vector<CheckResult> results = RunPreflight(*flags);
  const std::string text = flags->is_json ? PreflightJson(results) : PreflightText(results);
  if (flags->output_path.empty()) {
    std::cout << text;
  } else if (const absl::Status status = WriteFileAtomic(flags->output_path, text); !status.ok()) {
    std::cerr << status.message() << "\n";
    return kExitUsage;
  }
  const bool is_well = std::all_of(results.begin(), results.end(), [](const CheckResult& result) {
    return result.problem.empty();
  });
  return is_well ? EXIT_SUCCESS : EXIT_FAILURE;
}

int Main(const std::vector<std::string>& arguments) {
  signal(SIGPIPE, SIG_IGN);
  umask(077);  // what agent and step make is nobody else's
  if (!arguments.empty() && arguments[0] == kRankMode)
    return ExecAsRank({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments[0] == kJoinMode)
    return ExecAsMember({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments[0] == kGateMode)
    return RunGate({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments[0] == kPreflightMode)
    return CheckNode({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments[0] == kCacheMode)
    return RunCacheCommand({arguments.begin() + 1, arguments.end()}, RealClock(), &std::cout,
                           &std::cerr);
  if (arguments.size() == 2 && arguments[0] == kCacheWorkMode)
    return RunCacheWork(arguments[1], RealClock());
  if (!arguments.empty() && arguments[0] == kEnterMode)
    return RunEnter({arguments.begin() + 1, arguments.end()}, kEnterPatience);
  if (arguments.size() >= 2 && arguments[0] == "step") {
    const RealClock clock;
    const bool has_listener = arguments.size() == 3 && arguments[2] == kListenerFlag;
    const StepOptions options{.version = ASSAY_VERSION,
                              .listener_fd = has_listener ? kInheritedFd : -1};
    return RunStep(RunDirectory(arguments[1]), options, &clock);
  }
  const std::optional<FleetPlace> place = PlaceIn(arguments);
  if (place.has_value() || (arguments.size() == 3 && arguments[0] == "salvage")) {
    const absl::Status status =
        place.has_value() ? RunInFleet(*place) : Salvage(arguments[1], arguments[2]);
    if (!status.ok()) LOG(ERROR) << "agent ends: " << status;
    return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  if (arguments.size() == 1 && (arguments[0] == "--help" || arguments[0] == "--version")) {
    std::cout << (arguments[0] == "--help" ? kUsage : "assay-worker " ASSAY_VERSION "\n");
    return EXIT_SUCCESS;
  }
  const absl::StatusOr<Flags> flags = ParseFlags(arguments);
  if (!flags.ok()) {
    std::cerr << "assay-worker: " << flags.status().message() << "\n" << kUsage;
    return kExitUsage;
  }
  const absl::StatusOr<v1::WorkerConfig> config = LoadConfig(flags->config_path);
  if (!config.ok()) {
    std::cerr << config.status().message() << "\n";
    return kExitUsage;
  }
  if (flags->is_check) return EXIT_SUCCESS;
  const absl::Status status = RunAgent(*config);
  if (!status.ok()) LOG(ERROR) << "agent ends: " << status;
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace assay::agent

int main(int argc, char** argv) {
  return assay::agent::Main(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
}
