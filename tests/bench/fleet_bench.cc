// What a large fleet costs one coordinator: agents that join, are idle, and lose it for a moment;
// and how soon a gang of thousands is told to start. Agents are simulated down to their
// connections: each has its own certificate and channel and waits as agents do.
//
// Usage: fleet_bench [agents, default 10000] [idle seconds, default 60] [gang, default 4096]
// assayd takes a quarter of its descriptors for connections: 10,000 agents need a limit of 40,000.
// All come from one address, of which it shakes hands with 64 at a time; a fleet has many.
// Prints a table in Markdown.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "common/file.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/secret.h"
#include "tests/integration/deployment.h"
#include "tests/integration/fake_worker.h"
#include "worker/agent/back_off.h"

namespace assay::testing {
namespace {

constexpr int kPollSeconds = 20;
constexpr absl::Duration kJoinPause = absl::Milliseconds(5);
constexpr absl::Duration kPatience = absl::Minutes(10);

// Does things later, on one thread.
class Timer {
 public:
  Timer() : thread_([this] { Loop(); }) {}
  ~Timer() {
    is_over_ = true;
    thread_.join();
  }
  void After(absl::Duration wait, std::function<void()> what) {
    MutexLock lock(&mutex_);
    due_.emplace(absl::Now() + wait, std::move(what));
  }

 private:
  void Loop() {
    while (!is_over_) {
      absl::SleepFor(absl::Milliseconds(5));
      std::vector<std::function<void()>> now;
      {
        MutexLock lock(&mutex_);
        const auto end = due_.upper_bound(absl::Now());
        for (auto it = due_.begin(); it != end; ++it)
          now.push_back(std::move(it->second));
        due_.erase(due_.begin(), end);
      }
      for (const std::function<void()>& what : now)
        what();
    }
  }

  std::atomic<bool> is_over_ = false;
  Mutex mutex_;
  std::multimap<absl::Time, std::function<void()>> due_;
  std::thread thread_;
};

// What all agents count together.
struct Tally {
  std::atomic<int64_t> calls = 0;
  std::atomic<int64_t> failures = 0;
  std::atomic<int> heard_count = 0;  // agents that were answered since the last Begin
  std::atomic<int> epoch = 0;
  std::atomic<int> executing = 0;
  std::atomic<size_t> spec_bytes_max = 0;
  std::atomic<bool> is_over = false;
  std::atomic<int> ended = 0;  // agents that have nothing under way any more

  void Begin() {
    ++epoch;
    heard_count = 0;
  }
};

class Agent {
 public:
  Agent(const Deployment& deployment, int number, Tally* tally, Timer* timer)
      : name_(absl::StrCat("n", number)),
        endpoint_(deployment.Worker(name_)),
        stub_(v1::WorkerService::NewStub(*MakeChannel(endpoint_))),
        tally_(*tally),
        timer_(*timer) {
    request_.set_worker(absl::StrCat("workers/", name_));
    request_.set_incarnation(name_);
    request_.set_system_description_json("{}");
    request_.mutable_status()->set_phase(v1::WorkerStatus::IDLE);
    request_.mutable_capabilities()->set_host_name(name_);
    request_.mutable_capabilities()->set_core_count(64);
    request_.mutable_capabilities()->set_rendezvous_address("127.0.0.1:1");
  }

  // Until the tally says that it is over.
  void Call() {
    if (tally_.is_over) {
      ++tally_.ended;
      return;
    }
    context_ = std::make_unique<grpc::ClientContext>();
    PrepareCall(endpoint_, absl::Seconds(kPollSeconds + 10), context_.get());
    response_.Clear();
    stub_->async()->Synchronize(context_.get(), &request_, &response_,
                                [this](const grpc::Status& status) { Answered(status); });
  }

 private:
  void Answered(const grpc::Status& status) {
    if (tally_.is_over) return Call();
    if (!status.ok()) {
      ++tally_.failures;
      request_.clear_poll_timeout();
      timer_.After(agent::BackOff(++failure_count_, absl::Uniform(bits_, 0.0, 1.0)),
                   [this] { Call(); });
      return;
    }
    failure_count_ = 0;
    ++tally_.calls;
    if (std::exchange(epoch_, tally_.epoch.load()) != tally_.epoch) ++tally_.heard_count;
    const v1::DesiredState& desired = response_.desired();
    if (desired.action() == v1::DesiredState::EXECUTE && request_.status().run() != desired.run()) {
      request_.mutable_status()->set_phase(v1::WorkerStatus::EXECUTING);
      request_.mutable_status()->set_run(desired.run());
      request_.mutable_status()->set_generation(desired.generation());
      size_t most = tally_.spec_bytes_max;
      const size_t bytes = desired.spec().ByteSizeLong();
      while (bytes > most && !tally_.spec_bytes_max.compare_exchange_weak(most, bytes)) {
      }
      ++tally_.executing;
    }
    request_.mutable_poll_timeout()->set_seconds(kPollSeconds);
    Call();
  }

  const std::string name_;
  const Endpoint endpoint_;
  const std::unique_ptr<v1::WorkerService::Stub> stub_;
  Tally& tally_;
  Timer& timer_;
  v1::SynchronizeRequest request_;
  v1::SynchronizeResponse response_;
  std::unique_ptr<grpc::ClientContext> context_;
  absl::BitGen bits_;
  int failure_count_ = 0;
  int epoch_ = 0;
};

// What assayd has used so far.
struct Usage {
  double cpu_seconds = 0;
  double memory_mib = 0;

  static Usage Of(pid_t pid) {
    const std::string proc = absl::StrCat("/proc/", pid);
    const std::string stat = ReadFile(JoinPath(proc, "stat")).value_or("");
    const std::vector<std::string> fields = absl::StrSplit(stat.substr(stat.rfind(')') + 2), ' ');
    CHECK(fields.size() > 12) << "stat=" << stat;
    double user = 0;
    double system = 0;
    CHECK(absl::SimpleAtod(fields[11], &user) && absl::SimpleAtod(fields[12], &system));
    const std::string memory = ReadFile(JoinPath(proc, "statm")).value_or("");
    const std::vector<std::string> pages = absl::StrSplit(memory, ' ');
    double resident = 0;
    CHECK(pages.size() > 1 && absl::SimpleAtod(pages[1], &resident)) << "statm=" << memory;
    return {(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK)),
            resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20)};
  }
};

template <typename Predicate>
double SecondsUntil(absl::Time start, Predicate holds) {
  while (!holds()) {
    CHECK(absl::Now() - start < kPatience) << "it takes too long";
    absl::SleepFor(absl::Milliseconds(10));
  }
  return absl::ToDoubleSeconds(absl::Now() - start);
}

class Bench {
 public:
  Bench(int agent_count, absl::Duration idle, int gang)
      : agent_count_(agent_count), idle_(idle), gang_(gang) {}

  void Run() {
    CHECK_OK(deployment_.Start().status());
    deployment_.set_port(std::string(absl::StripPrefix(
        deployment_.Tls().target, "127.0.0.1:")));  // where the agents look for it
    std::vector<std::unique_ptr<Agent>> agents;
    for (int i = 0; i < agent_count_; ++i)
      agents.push_back(std::make_unique<Agent>(deployment_, i, &tally_, &timer_));
    std::printf("%d agents\n\n| | seconds | assayd: CPU seconds | MiB resident | |\n",
                agent_count_);
    std::printf("|---|---|---|---|---|\n");
    Join(agents);
    Idle();
    Restart();
    Start();
    tally_.is_over = true;
    deployment_.Kill();
    SecondsUntil(absl::Now(), [this] { return tally_.ended == agent_count_; });
  }

 private:
  bool IsAllHeard() const { return tally_.heard_count >= agent_count_; }

  void Report(const char* what, double seconds, const Usage& before, const std::string& more) {
    const Usage now = Usage::Of(deployment_.pid());
    std::printf("| %s | %.1f | %.2f | %.0f | %s |\n", what, seconds,
                now.cpu_seconds - before.cpu_seconds, now.memory_mib, more.c_str());
    std::fflush(stdout);
  }

  void Join(const std::vector<std::unique_ptr<Agent>>& agents) {
    const Usage before = Usage::Of(deployment_.pid());
    tally_.Begin();
    const absl::Time start = absl::Now();
    for (const std::unique_ptr<Agent>& agent : agents) {
      agent->Call();
      absl::SleepFor(kJoinPause);
    }
    const double seconds = SecondsUntil(start, [this] { return IsAllHeard(); });
    const Usage after = Usage::Of(deployment_.pid());
    Report(
        "all join, at most 200/s", seconds, before,
        absl::StrCat(tally_.failures.exchange(0), " calls failed; ",
                     static_cast<int>((after.memory_mib - before.memory_mib) * 1024 / agent_count_),
                     " KiB each"));
  }

  void Idle() {
    const Usage before = Usage::Of(deployment_.pid());
    const int64_t calls = tally_.calls;
    absl::SleepFor(idle_);
    const double seconds = absl::ToDoubleSeconds(idle_);
    const double share = (Usage::Of(deployment_.pid()).cpu_seconds - before.cpu_seconds) / seconds;
    Report("idle", seconds, before,
           absl::StrCat(static_cast<int64_t>(static_cast<double>(tally_.calls - calls) / seconds),
                        " calls/s; ", static_cast<int>(share * 100), " % of a core; ",
                        tally_.failures.exchange(0), " calls failed"));
  }

  void Restart() {
    deployment_.Kill();
    CHECK_OK(deployment_.Start().status());
    const absl::Time start = absl::Now();
    tally_.Begin();
    const double seconds = SecondsUntil(start, [this] { return IsAllHeard(); });
    Report("kill -9, serves again, until all are back", seconds, {},
           absl::StrCat(tally_.failures.exchange(0), " calls failed"));
  }

  void Start() {
    Client root(deployment_.Unix());
    AddTinyDataset(&root);
    v1::CreateSubmissionRequest request;
    request.set_request_id(MakeUuid());
    *request.mutable_spec() = TinySpec("Org", gang_);
    for (v1::Hyperparameter& parameter : *request.mutable_spec()->mutable_hyperparameters())
      if (parameter.key() == "global_batch_size") parameter.set_json_value(absl::StrCat(gang_));
    const Usage before = Usage::Of(deployment_.pid());
    const absl::Time start = absl::Now();
    CHECK_OK(root.Call(root.submission(), &v1::SubmissionService::Stub::CreateSubmission, request)
                 .status());
    const double seconds = SecondsUntil(start, [this] { return tally_.executing >= gang_; });
    Report(absl::StrCat("a gang of ", gang_, ", from submission until the last is told").c_str(),
           seconds, before,
           absl::StrCat("run spec: at most ", tally_.spec_bytes_max.load(), " bytes"));
  }

  const int agent_count_;
  const absl::Duration idle_;
  const int gang_;
  Deployment deployment_;
  Tally tally_;
  Timer timer_;
};

int Argument(int argc, char** argv, int index, int otherwise) {
  int value = otherwise;
  if (argc > index) CHECK(absl::SimpleAtoi(argv[index], &value)) << "not a number: " << argv[index];
  return value;
}

}  // namespace
}  // namespace assay::testing

int main(int argc, char** argv) {
  using assay::testing::Argument;
  const int agents = Argument(argc, argv, 1, 10'000);
  assay::testing::Bench(agents, absl::Seconds(Argument(argc, argv, 2, 60)),
                        std::min(Argument(argc, argv, 3, 4096), agents))
      .Run();
}
