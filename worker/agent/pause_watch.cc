#include "worker/agent/pause_watch.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"

#include "common/file.h"
#include "common/log.h"
#include "common/mutex.h"
#include "worker/agent/clock_watch.h"

namespace assay::agent {
namespace {

constexpr int64_t kIntervalNs = 100'000'000;
constexpr int64_t kLateNs = 250'000'000;
constexpr int64_t kRecentNs = 1'000'000'000;
// On a busy virtual machine no beat of an hour came later than 0.2 s.
constexpr int64_t kPauseNs = 1'000'000'000;
// So that what is read at a pause is of that pause.
constexpr int64_t kKnownForNs = 10'000'000'000;

Beat ReadBeat() {
  return {.wall_ns = ReadClockNs(CLOCK_REALTIME),
          .mono_ns = ReadClockNs(CLOCK_MONOTONIC),
          .boot_ns = ReadClockNs(CLOCK_BOOTTIME)};
}

double NumberAt(const std::vector<std::string>& fields, size_t index) {
  double number = 0;
  return index < fields.size() && absl::SimpleAtod(fields[index], &number) ? number : 0;
}

// Those of its first line.
std::vector<std::string> FieldsOf(const char* path) {
  const std::string text = ReadFile(path).value_or("");
  return absl::StrSplit(text.substr(0, text.find('\n')), ' ', absl::SkipEmpty());
}

// "cpu user nice system idle iowait irq softirq steal ..." in ticks.
Hindrance ReadHindrance() {
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK)) *
                       static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  return {.stolen_s = NumberAt(FieldsOf("/proc/stat"), 8) / ticks,
          .waited_s = static_cast<double>(ThreadWaitNs()) * 1e-9};
}

double Seconds(int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

}  // namespace

// "ran waited slices" in nanoseconds.
int64_t ThreadWaitNs() {
  return static_cast<int64_t>(NumberAt(FieldsOf("/proc/thread-self/schedstat"), 1));
}

PauseWatch::PauseWatch(const Beat& first, int64_t interval_ns,
                       std::function<Hindrance()> read_hindrance)
    : interval_ns_(interval_ns),
      read_hindrance_(std::move(read_hindrance)),
      last_(first),
      known_(read_hindrance_()),
      known_at_ns_(first.mono_ns) {}

void PauseWatch::Take(const Beat& beat) {
  ++beat_count_;
  const int64_t passed_ns = beat.mono_ns - last_.mono_ns;
  const int64_t suspended_ns = beat.boot_ns - last_.boot_ns - passed_ns;
  const int64_t late_ns = passed_ns - interval_ns_ + std::max<int64_t>(suspended_ns, 0);
  latest_ns_ = std::max(latest_ns_, late_ns);
  if (late_ns > kLateNs) ++late_count_;
  recent_.emplace_back(beat.mono_ns, late_ns);
  while (recent_.front().first < beat.mono_ns - kRecentNs)
    recent_.pop_front();
  const bool is_pause = late_ns > kPauseNs;
  if (is_pause || beat.mono_ns - known_at_ns_ > kKnownForNs) {
    const Hindrance now = read_hindrance_();
    if (is_pause && faults_.size() < kNodeFaultsMax) Note(beat, late_ns, suspended_ns, now);
    known_ = now;
    known_at_ns_ = beat.mono_ns;
  }
  last_ = beat;
}

int64_t PauseWatch::RecentLateNs() const {
  int64_t latest_ns = 0;
  for (const auto& [_, late_ns] : recent_)
    latest_ns = std::max(latest_ns, late_ns);
  return latest_ns;
}

void PauseWatch::Note(const Beat& beat, int64_t late_ns, int64_t suspended_ns,
                      const Hindrance& now) {
  std::string found = absl::StrFormat(
      "nothing was watched for %.1f s until %s", Seconds(late_ns),
      absl::FormatTime("%H:%M:%E3SZ", absl::FromUnixNanos(beat.wall_ns), absl::UTCTimeZone()));
  std::vector<std::string> causes;
  const auto add = [&causes](double seconds, const char* cause) {
    if (seconds >= 0.05) causes.push_back(absl::StrFormat("%s for %.1f s", cause, seconds));
  };
  add(Seconds(suspended_ns), "the node was suspended");
  add(now.stolen_s - known_.stolen_s, "its processors were a host's");
  add(now.waited_s - known_.waited_s, "none was free");
  absl::StrAppend(&found, ": ",
                  causes.empty() ? "something stopped the step" : absl::StrJoin(causes, ", "));
  faults_.push_back({"R-PAU-002", std::move(found)});
}

struct Heartbeat::Shared {
  const UniqueFd stop{eventfd(0, EFD_CLOEXEC)};
  Mutex mutex;
  std::optional<PauseWatch> watch ABSL_GUARDED_BY(mutex);
  bool is_real_time ABSL_GUARDED_BY(mutex) = false;
  std::thread thread;

  void Run() {
    const sched_param lowest{.sched_priority = 1};
    const bool is_favoured = pthread_setschedparam(pthread_self(), SCHED_FIFO, &lowest) == 0;
    {
      MutexLock lock(&mutex);
      is_real_time = is_favoured;
      watch.emplace(ReadBeat(), kIntervalNs, ReadHindrance);
    }
    pollfd entry{stop.get(), POLLIN, 0};
    while (poll(&entry, 1, static_cast<int>(kIntervalNs / 1'000'000)) <= 0) {
      const Beat beat = ReadBeat();
      MutexLock lock(&mutex);
      watch->Take(beat);
    }
  }
};

Heartbeat::Heartbeat() : shared_(std::make_unique<Shared>()) {
  CHECK(shared_->stop.is_open()) << "no descriptor is left for the heartbeat";
  shared_->thread = std::thread([this] { shared_->Run(); });
}

Heartbeat::~Heartbeat() {
  const uint64_t one = 1;
  CHECK(write(shared_->stop.get(), &one, sizeof(one)) == sizeof(one));
  shared_->thread.join();
  MutexLock lock(&shared_->mutex);
  const PauseWatch& watch = *shared_->watch;
  LOG(INFO) << "heartbeat beats=" << watch.beat_count() << " late=" << watch.late_count()
            << " latest_ms=" << watch.latest_ns() / 1'000'000
            << " is_real_time=" << shared_->is_real_time;
}

std::vector<NodeFault> Heartbeat::faults() const {
  MutexLock lock(&shared_->mutex);
  if (!shared_->watch.has_value()) return {};  // the thread has not begun
  shared_->watch->Take(ReadBeat());
  return shared_->watch->faults();
}

int64_t Heartbeat::RecentLateNs() const {
  MutexLock lock(&shared_->mutex);
  if (!shared_->watch.has_value()) return 0;
  shared_->watch->Take(ReadBeat());
  return shared_->watch->RecentLateNs();
}

}  // namespace assay::agent
