// Two ranks train while somebody in another network namespace attacks them: the run ends as if
// nobody had been there, to the last bit, or it fails. It never ends well with other bits.
//
// Needs CAP_NET_ADMIN and CAP_SYS_ADMIN for the namespaces, and iproute2; skipped without.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

#include "common/dataset/cosmo_dataset.h"
#include "common/exit_code.h"
#include "common/file.h"
#include "common/process.h"
#include "common/sha256.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/trainer/run_specs.h"

namespace assay {
namespace {

using testing::EvalErrors;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::IsOkAndHolds;
using testing::SetHyperparameter;
using testing::TempDir;

constexpr absl::Duration kPatience = absl::Minutes(2);
constexpr char kRanksAddress[] = "10.77.0.1";
constexpr char kStrangersAddress[] = "10.77.0.2";

bool Shell(const std::string& command) {
  return std::system(absl::StrCat(command, " >/dev/null 2>&1").c_str()) == 0;
}

std::string NetworkOf(const std::string& process) {
  std::array<char, 64> target = {};
  const std::string link = absl::StrCat("/proc/", process, "/ns/net");
  const ssize_t size = readlink(link.c_str(), target.data(), target.size());
  return std::string(target.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
}

std::string ProgramPath(const char* name) {
  const char* bin = std::getenv("ASSAY_BIN_DIR");
  return absl::StrCat(bin == nullptr ? "build/dev/bin" : bin, "/", name);
}

// This thread and what it starts move to a network of their own, with one cable to another, in
// which a process waits.
class TwoNetworks {
 public:
  ~TwoNetworks() {
    if (holder_.pid > 0) static_cast<void>(StopGroup(holder_, absl::ZeroDuration()));
  }

  // False where that is not permitted.
  bool Make() {
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) return false;
    // UCX looks for interfaces in /sys, which must show the new network.
    if (mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("sysfs", "/sys", "sysfs", 0, nullptr) != 0) {
      return false;
    }
    const std::string own = NetworkOf("self/task/" + std::to_string(gettid()));
    const absl::StatusOr<ProcessId> holder =
        Spawn({.argv = {"/usr/bin/unshare", "-n", "sleep", "600"}});
    if (!holder.ok()) return false;
    holder_ = *holder;
    while (IsRunning(holder_) && NetworkOf(std::to_string(holder_.pid)) == own)
      sched_yield();
    return IsRunning(holder_) && Shell("ip link set lo up") &&
           Shell(absl::StrCat("ip link add ranks0 type veth peer name strange0 netns ",
                              holder_.pid)) &&
           Shell(absl::StrCat("ip addr add ", kRanksAddress, "/24 dev ranks0")) &&
           Shell("ip link set ranks0 up") &&
           Shell(InOther(absl::StrCat("ip addr add ", kStrangersAddress, "/24 dev strange0"))) &&
           Shell(InOther("ip link set strange0 up"));
  }

  std::string InOther(const std::string& command) const {
    return absl::StrCat("nsenter -t ", holder_.pid, " -n ", command);
  }
  std::vector<std::string> InOther(std::vector<std::string> argv) const {
    argv.insert(argv.begin(), {"/usr/bin/nsenter", "-t", std::to_string(holder_.pid), "-n"});
    return argv;
  }

 private:
  ProcessId holder_;
};

class IntruderRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!networks_.Make())
      GTEST_SKIP() << "no network namespaces: this needs CAP_NET_ADMIN, CAP_SYS_ADMIN and iproute2";
    dataset::CosmoDatasetSpec spec;
    spec.parameters.mode = dataset::CosmoMode::kBeacon;
    spec.train_samples = kTrainSamples;
    spec.validation_samples = kEvalSamples;
    ASSERT_THAT(dataset::GenerateCosmoDataset(dir_.Path("data"), spec, /*threads=*/2), IsOk());
  }

  void TearDown() override {
    for (const ProcessId& process : started_)
      if (IsRunning(process)) static_cast<void>(StopGroup(process, absl::ZeroDuration()));
  }

  v1::RunSpec Run(const std::string& name) {
    v1::RunSpec run = testing::SmallRun();
    run.set_node_count(2);
    run.set_rendezvous_token("secret of this test");
    run.set_log_path(dir_.Path(name));
    run.set_epoch_count_max(kEpochs);
    run.set_quality_target(1e-9);
    run.mutable_dataset()->set_path(dir_.Path("data"));
    run.mutable_dataset()->set_train_sample_count(kTrainSamples);
    run.mutable_dataset()->set_eval_sample_count(kEvalSamples);
    SetHyperparameter(&run, "checkpoint_interval_steps", "1000000");  // the finished model only
    return run;
  }

  // As the agent does: listens on the ranks' address.
  void Listen() {
    listener_ = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    ASSERT_EQ(inet_pton(AF_INET, kRanksAddress, &address.sin_addr), 1);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(bind(listener_.get(), generic, sizeof address), 0);
    ASSERT_EQ(listen(listener_.get(), 100), 0);
    socklen_t size = sizeof address;
    ASSERT_EQ(getsockname(listener_.get(), generic, &size), 0);
    port_ = ntohs(address.sin_port);
  }

  ProcessId StartRank(v1::RunSpec run, int rank) {
    run.set_node_rank(rank);
    run.set_rendezvous_address(absl::StrCat(kRanksAddress, ":", port_));
    if (rank == 0) run.set_rendezvous_listener(kInheritedFd);
    const std::string path = absl::StrCat(run.log_path(), ".spec_", rank);
    std::string text;
    google::protobuf::TextFormat::PrintToString(run, &text);
    EXPECT_THAT(WriteFileAtomic(path, text), IsOk());
    return Start({.argv = {ProgramPath("assay-train"), path},
                  .environment = {"OMP_NUM_THREADS=1", "UCX_LOG_LEVEL=error", "UCX_TLS=tcp,self"},
                  .output_path = OutputOf(run, rank),
                  .inherited_fd = rank == 0 ? listener_.get() : -1});
  }

  ProcessId Start(const SpawnOptions& options) {
    const absl::StatusOr<ProcessId> process = Spawn(options);
    EXPECT_THAT(process, IsOk());
    if (process.ok()) started_.push_back(*process);
    return process.value_or(ProcessId{});
  }

  ProcessId StartIntruder(std::vector<std::string> argv) {
    argv.insert(argv.begin(), {ProgramPath("rank_intruder"), kRanksAddress});
    return Start({.argv = networks_.InOther(argv), .output_path = dir_.Path("intruder")});
  }

  // Ports that are listened on in the ranks' network besides the rendezvous.
  std::set<std::string> OtherPorts() const {
    std::set<std::string> ports;
    const std::string table = ReadFile("/proc/thread-self/net/tcp").value_or("");
    for (const absl::string_view line : absl::StrSplit(table, '\n')) {
      const std::vector<absl::string_view> fields =
          absl::StrSplit(line, ' ', absl::SkipWhitespace());
      constexpr size_t kLocal = 1, kState = 3;
      if (fields.size() <= kState || fields[kState] != "0A") continue;  // 0A: it listens
      const std::string hex(fields[kLocal].substr(fields[kLocal].find(':') + 1));
      const auto port = std::strtol(hex.c_str(), nullptr, 16);
      if (port != port_) ports.insert(std::to_string(port));
    }
    return ports;
  }

  static std::string OutputOf(const v1::RunSpec& run, int rank) {
    return absl::StrCat(run.log_path(), ".out_", rank);
  }
  static std::string WeightsOf(const v1::RunSpec& run) {
    return Sha256Hex(ReadFile(run.log_path() + ".checkpoint", int64_t{1} << 30).value_or(""));
  }
  std::string IntruderOutput() const { return ReadFile(dir_.Path("intruder")).value_or(""); }

  static constexpr int kTrainSamples = 48;
  static constexpr int kEvalSamples = 16;
  static constexpr int kEpochs = 12;
  TempDir dir_;
  TwoNetworks networks_;
  UniqueFd listener_;
  int port_ = 0;
  std::vector<ProcessId> started_;
};

TEST_F(IntruderRunTest, ARunThatIsAttackedEndsWithTheBitsOfOneThatIsNot) {
  Listen();
  const v1::RunSpec alone = Run("alone");
  for (const ProcessId& rank : {StartRank(alone, 0), StartRank(alone, 1)})
    ASSERT_THAT(WaitForExit(rank, kPatience), IsOkAndHolds(0))
        << ReadFile(OutputOf(alone, 0)).value_or("");

  const v1::RunSpec attacked = Run("attacked");
  StartIntruder({std::to_string(port_)});  // there before the ranks are
  while (!absl::StrContains(IntruderOutput(), "connected"))
    sched_yield();
  const std::vector<ProcessId> ranks = {StartRank(attacked, 0), StartRank(attacked, 1)};
  const absl::Time deadline = absl::Now() + kPatience;
  while (OtherPorts().size() < ranks.size() && absl::Now() < deadline)
    sched_yield();
  std::vector<std::string> ports;
  for (const std::string& port : OtherPorts())
    ports.push_back(port);
  StartIntruder(ports);

  for (const ProcessId& rank : ranks)
    EXPECT_THAT(WaitForExit(rank, kPatience), IsOkAndHolds(0))
        << ReadFile(OutputOf(attacked, 0)).value_or("")
        << ReadFile(OutputOf(attacked, 1)).value_or("");
  EXPECT_EQ(EvalErrors(ReadFile(attacked.log_path()).value_or("")),
            EvalErrors(ReadFile(alone.log_path()).value_or("")));
  EXPECT_EQ(WeightsOf(attacked), WeightsOf(alone));
  EXPECT_THAT(ReadFile(attacked.log_path()),
              IsOkAndHolds(HasSubstr("\"key\": \"rank_messages\", \"value\": \"sealed\"")));
  const std::string said = IntruderOutput();
  for (const std::string& port : ports) {
    EXPECT_THAT(said, HasSubstr(absl::StrCat(port, " gives no answer")));
    EXPECT_THAT(said, ::testing::Not(HasSubstr(absl::StrCat(port, " connected"))));
  }
}

}  // namespace
}  // namespace assay
