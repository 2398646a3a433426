#include "worker/agent/telemetry/sampler.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <latch>
#include <span>
#include <thread>
#include <utility>

#include "absl/time/clock.h"

#include "common/file.h"
#include "common/log.h"
#include "common/process.h"
#include "common/status.h"
#include "worker/agent/telemetry/foreign_watch.h"

namespace assay::agent {
namespace {

constexpr double kBudget = 0.001;  // of one core
constexpr int64_t kWindowNs = 60'000'000'000;
constexpr absl::Duration kIntervalMax = absl::Minutes(1);

int64_t ThreadCpuNs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::ToUnixNanos(absl::TimeFromTimespec(time));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Sampler>> Sampler::Create(
    const std::string& path, const std::string& live_path,
    std::vector<std::unique_ptr<TelemetrySource>> sources, telemetry::Header header,
    Clocks clocks) {
  for (const auto& source : sources)
    header.columns.insert(header.columns.end(), source->columns().begin(), source->columns().end());
  header.columns.push_back({"sampler.cpu", "us", true});
  ASSIGN_OR_RETURN(telemetry::SeriesWriter writer, telemetry::SeriesWriter::Create(path, header));
  std::unique_ptr<Sampler> sampler(new Sampler(std::move(writer),
                                               LiveFile(live_path, header.columns),
                                               std::move(sources), std::move(clocks)));
  sampler->values_.resize(header.columns.size());
  return sampler;
}

Sampler::Sampler(telemetry::SeriesWriter writer, LiveFile live,
                 std::vector<std::unique_ptr<TelemetrySource>> sources, Clocks clocks)
    : writer_(std::move(writer)),
      live_(std::move(live)),
      sources_(std::move(sources)),
      clocks_(std::move(clocks)),
      has_meters_(std::any_of(sources_.begin(), sources_.end(),
                              [](const auto& source) { return source->is_meter(); })) {}

absl::Status Sampler::Sample(bool is_last) {
  const int64_t node_ns = clocks_.node_ns();
  if (!has_begun_) {
    has_begun_ = true;
    window_node_ns_ = node_ns;
    window_cpu_ns_ = clocks_.cpu_ns();
    is_last = true;
  }
  const bool is_all =
      is_last || node_ns - all_at_ns_ >= absl::ToInt64Nanoseconds(interval_ - kSecond / 2);
  if (is_all) all_at_ns_ = node_ns;
  std::fill(values_.begin(), values_.end(), telemetry::kMissing);
  size_t at = 0;
  for (const auto& source : sources_) {
    if (is_all || source->is_meter())
      source->Sample(std::span(values_).subspan(at, source->columns().size()));
    at += source->columns().size();
  }
  if (is_all) KeepLive(node_ns);
  const int64_t cpu_ns = clocks_.cpu_ns();
  values_[at] = cpu_ns / 1000;
  KeepToBudget(node_ns, cpu_ns);
  return writer_.Append(node_ns, values_);
}

void Sampler::KeepLive(int64_t node_ns) {
  if (!is_live_) return;
  const absl::Status status = live_.Take(node_ns, values_);
  if (status.ok()) return;
  is_live_ = false;
  LOG(WARNING) << "what the node does is not told while the run goes on: " << status;
}

void Sampler::KeepToBudget(int64_t node_ns, int64_t cpu_ns) {
  const int64_t passed_ns = node_ns - window_node_ns_;
  if (passed_ns < kWindowNs) return;
  const double share =
      static_cast<double>(cpu_ns - window_cpu_ns_) / static_cast<double>(passed_ns);
  window_node_ns_ = node_ns;
  window_cpu_ns_ = cpu_ns;
  if (share <= kBudget || interval_ >= kIntervalMax) return;
  interval_ = std::min(2 * interval_, kIntervalMax);
  LOG(WARNING) << "telemetry cost " << share * 100 << " % of a core: it is taken every "
               << interval_ << " from now on";
}

struct Telemetry::Shared {
  const UniqueFd stop{eventfd(0, EFD_CLOEXEC)};
  std::unique_ptr<Sampler> sampler;
  std::unique_ptr<ForeignWatch> foreign;  // null: others are not looked at
  std::function<int64_t()> node_ns;
  absl::Time due = absl::Now();
  std::latch first{1};  // sample
  std::thread thread;

  // Waits until a sample is due: each so long after the one before was, or a power log would have
  // less than one a second. True once there shall be no more.
  bool IsStopped() {
    const absl::Time now = absl::Now();
    due += sampler->interval();
    if (due < now || due > now + sampler->interval()) due = now + sampler->interval();
    pollfd entry{stop.get(), POLLIN, 0};
    return poll(&entry, 1, static_cast<int>(absl::ToInt64Milliseconds(due - now))) > 0;
  }

  void LookAtOthers(bool is_last) {
    if (foreign == nullptr) return;
    const absl::Status status = foreign->Look(node_ns(), is_last);
    if (status.ok()) return;
    LOG(WARNING) << "who else uses the node is not watched any more: " << status;
    foreign.reset();
  }

  void Run() {
    LookAtOthers(/*is_last=*/false);
    absl::Status status = sampler->Sample();
    first.count_down();
    while (status.ok() && !IsStopped()) {
      LookAtOthers(/*is_last=*/false);
      status = sampler->Sample();
    }
    LookAtOthers(/*is_last=*/true);
    if (status.ok())
      status = sampler->Sample(/*is_last=*/true);  // so that the run lies between two
    if (status.ok()) status = sampler->Flush();
    if (!status.ok()) LOG(WARNING) << "no more telemetry: " << status;
  }
};

Telemetry::Telemetry(const std::string& path, const std::string& foreign_path,
                     const std::string& live_path, const std::string& boot_id,
                     std::function<int64_t()> node_ns, const MeterOptions& meters) {
  const SourceOptions options{.nvml_library = "libnvidia-ml.so.1",
                              .meters = meters,
                              .ticks_per_second = sysconf(_SC_CLK_TCK),
                              .processes =
                                  [] {
                                    std::vector<pid_t> processes = DescendantsOf(getpid());
                                    processes.push_back(getpid());
                                    return processes;
                                  },
                              .steering = adjtimex};
  telemetry::Header header{.boot_id = boot_id,
                           .wall_us = absl::ToUnixMicros(absl::Now()),
                           .node_ns = node_ns(),
                           .columns = {}};
  for (const auto& [meter, with] : meters.comparisons)
    header.comparisons.push_back({meter, with});
  absl::StatusOr<std::unique_ptr<Sampler>> sampler = Sampler::Create(
      path, live_path, MakeSources(options), header, {.node_ns = node_ns, .cpu_ns = ThreadCpuNs});
  auto shared = std::make_unique<Shared>();
  if (!sampler.ok() || !shared->stop.is_open()) {
    LOG(WARNING) << "no telemetry is kept: " << sampler.status();
    return;
  }
  shared->sampler = *std::move(sampler);
  shared->node_ns = std::move(node_ns);
  absl::StatusOr<std::unique_ptr<ForeignWatch>> foreign =
      ForeignWatch::Create(foreign_path, {.ticks_per_second = options.ticks_per_second,
                                          .own = getpid(),
                                          .left_out = OwnAgent(),
                                          .cpu_ns = ThreadCpuNs});
  if (foreign.ok()) {
    shared->foreign = *std::move(foreign);
  } else {
    LOG(WARNING) << "who else uses the node is not watched: " << foreign.status();
  }
  shared_ = std::move(shared);
  shared_->thread = std::thread([this] { shared_->Run(); });
  shared_->first.wait();
}

Telemetry::~Telemetry() {
  if (shared_ == nullptr) return;
  const uint64_t one = 1;
  CHECK(write(shared_->stop.get(), &one, sizeof(one)) == sizeof(one));
  shared_->thread.join();
}

}  // namespace assay::agent
