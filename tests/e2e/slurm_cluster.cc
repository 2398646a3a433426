#include "tests/e2e/slurm_cluster.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "common/log.h"
#include "common/secret.h"
#include "tests/support/status_matchers.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

constexpr int kNodes = 3;
constexpr int kPort = 26817;  // of slurmctld; the nodes' follow

constexpr char kConfig[] = R"(ClusterName=assaytest
SlurmctldHost=HOST(127.0.0.1)
SlurmctldPort=PORT
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=DIR/munge.sock
CredType=cred/munge
StateSaveLocation=DIR/state
SlurmdSpoolDir=DIR/spool-%n
TmpFS=DIR/tmp-%n
SlurmctldPidFile=DIR/slurmctld.pid
SlurmdPidFile=DIR/slurmd-%n.pid
SlurmctldLogFile=DIR/slurmctld.log
SlurmdLogFile=DIR/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
JobRequeue=0
ReturnToService=2
SlurmdTimeout=10
KillWait=5
MinJobAge=60
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=2
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
)";

std::string HostName() {
  std::array<char, 256> name{};
  CHECK(gethostname(name.data(), name.size() - 1) == 0);
  const std::string full = name.data();
  return full.substr(0, full.find('.'));
}

bool IsInstalled(const char* program) {
  return FileExists(absl::StrCat("/usr/sbin/", program)) ||
         FileExists(absl::StrCat("/usr/bin/", program));
}

// Waits for other clusters on this machine to end.
UniqueFd TakeTurn() {
  UniqueFd fd(open("/tmp/assay_slurm_test.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  CHECK(fd.is_open() && flock(fd.get(), LOCK_EX) == 0);
  return fd;
}

// Kills what has `word` in its environment.
void KillAll(const std::string& word) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid) || pid == getpid()) continue;
    const absl::StatusOr<std::string> environment = ReadFile(entry.path() / "environ");
    if (environment.ok() && absl::StrContains(*environment, word)) kill(pid, SIGKILL);
  }
}

}  // namespace

std::string SlurmCluster::Obstacle() {
  if (geteuid() != 0) return "only root may start slurmd";
  for (const char* program : {"slurmctld", "slurmd", "munged", "sbatch"})
    if (!IsInstalled(program))
      return absl::StrCat(program,
                          " is missing (apt-get install slurmctld slurmd slurm-client munge)");
  return "";
}

void SlurmCluster::WriteFiles() const {
  std::string config = absl::StrReplaceAll(
      kConfig, {{"DIR", dir_.path()}, {"HOST", HostName()}, {"PORT", absl::StrCat(kPort)}});
  for (int i = 0; i < kNodes; ++i) {
    absl::StrAppend(&config, "NodeName=n", i, " NodeHostname=", HostName(),
                    " NodeAddr=127.0.0.1 Port=", kPort + 1 + i,
                    " CPUs=", std::max(1u, std::thread::hardware_concurrency()),
                    " RealMemory=1000 Feature=rack", i / 2, "\n");
    CHECK_OK(MakeDirectories(dir_.Path(absl::StrCat("tmp-n", i))));
  }
  absl::StrAppend(&config,
                  "PartitionName=main Nodes=n[0-2] OverSubscribe=EXCLUSIVE MaxTime=1-0 "
                  "DefaultTime=10 State=UP Default=YES PriorityTier=10 PreemptMode=OFF\n"
                  "PartitionName=spare Nodes=n[0-2] OverSubscribe=EXCLUSIVE MaxTime=1-0 "
                  "DefaultTime=10 State=UP PriorityTier=1 PreemptMode=CANCEL GraceTime=2\n");
  WriteFile(ConfigPath(), config);
  WriteFile(dir_.Path("cgroup.conf"), "CgroupPlugin=autodetect\n");
  CHECK_OK(MakeDirectories(dir_.Path("state")));
  CHECK_OK(MakeDirectories(dir_.Path("munge"), kPrivateDirectory));
  CHECK_OK(WriteFileAtomic(dir_.Path("munge/key"), absl::StrCat(MakeToken(), MakeToken()), 0600));
}

ProcessId SlurmCluster::StartDaemon(std::vector<std::string> argv) const {
  const absl::StatusOr<ProcessId> daemon =
      Spawn({.argv = std::move(argv), .output_path = dir_.Path("daemons.log")});
  CHECK_OK(daemon.status());
  return *daemon;
}

SlurmCluster::SlurmCluster(Site* site) : turn_(TakeTurn()), site_(site) {
  WriteFiles();
  site->Export(absl::StrCat("SLURM_CONF=", ConfigPath()));
  munge_ = StartDaemon({"/usr/sbin/munged", "--foreground", "--force",
                        absl::StrCat("--socket=", MungeSocket()),
                        absl::StrCat("--key-file=", dir_.Path("munge/key")),
                        absl::StrCat("--pid-file=", dir_.Path("munged.pid")),
                        absl::StrCat("--log-file=", dir_.Path("munge/log")),
                        absl::StrCat("--seed-file=", dir_.Path("munge/seed")), "--num-threads=2"});
  while (!FileExists(MungeSocket())) {
    CHECK(IsRunning(munge_)) << ReadFile(dir_.Path("daemons.log")).value_or("");
    std::this_thread::yield();
  }
  StartController();
  nodes_.resize(kNodes);
  for (size_t i = 0; i < nodes_.size(); ++i)
    StartNode(i);
  std::string states;
  for (const absl::Time end = absl::Now() + absl::Seconds(20); absl::Now() < end;) {
    states = site_
                 ->RunProgram(
                     {"/usr/bin/sinfo", "--noheader", "--Node", "--partition=main", "--format=%T"})
                 .out;
    if (states == "idle\nidle\nidle\n") return;
  }
  ADD_FAILURE() << states << ReadFile(dir_.Path("slurmctld.log")).value_or("");
}

void SlurmCluster::StartController() {
  controller_ = StartDaemon({"/usr/sbin/slurmctld", "-D", "-f", ConfigPath()});
}

void SlurmCluster::StopController() {
  CHECK_OK(StopGroup(controller_, absl::Seconds(20)).status());
}

void SlurmCluster::AwaitSavedState(const std::string& file_name, absl::Time since) const {
  for (const absl::Time end = absl::Now() + absl::Seconds(20); absl::Now() < end;) {
    struct stat file {};
    if (stat(dir_.Path(absl::StrCat("state/", file_name)).c_str(), &file) == 0 &&
        absl::TimeFromTimespec(file.st_mtim) > since)
      return;
    absl::SleepFor(absl::Milliseconds(100));
  }
  ADD_FAILURE() << "slurmctld has not saved " << file_name;
}

void SlurmCluster::KillController() {
  CHECK_OK(SignalGroup(controller_, SIGKILL));
  CHECK_OK(WaitForExit(controller_, absl::Seconds(20)).status());
}

void SlurmCluster::KillNode(size_t i) {
  CHECK_OK(SignalGroup(nodes_[i], SIGKILL));
  CHECK_OK(WaitForExit(nodes_[i], absl::Seconds(20)).status());
}

void SlurmCluster::StartNode(size_t i) {
  nodes_[i] =
      StartDaemon({"/usr/sbin/slurmd", "-D", "-N", absl::StrCat("n", i), "-f", ConfigPath()});
}

SlurmCluster::~SlurmCluster() {
  // Steps first: daemons leave them behind.
  KillAll(absl::StrCat("SLURM_CONF=", ConfigPath()));
  std::vector<ProcessId> daemons = {controller_};
  daemons.insert(daemons.end(), nodes_.begin(), nodes_.end());
  daemons.push_back(munge_);
  for (const ProcessId& daemon : daemons) {
    if (!IsRunning(daemon)) continue;
    EXPECT_THAT(StopGroup(daemon, absl::Seconds(5)), IsOk());
  }
  KillAll(absl::StrCat("SLURM_CONF=", ConfigPath()));
}

std::string SlurmCluster::Run(std::vector<std::string> argv) const {
  argv[0].insert(0, "/usr/bin/");
  const Outcome outcome = site_->RunProgram(std::move(argv));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.Text();
  return outcome.out;
}

}  // namespace assay::testing
