// What the processes of the run use themselves (/proc/PID/stat, /proc/PID/io): whatever else the
// node does is somebody else's.

#include <unistd.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "worker/agent/telemetry/kernel_file.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

// Looking for processes costs more than asking those that are known: a run starts its own within
// seconds, and few later.
constexpr int kEagerSamples = 10;
constexpr int kSamplesPerSearch = 30;

// Words behind the name in /proc/PID/stat.
constexpr size_t kMajorFaults = 9;
constexpr size_t kTimeWords[] = {11, 12, 13,
                                 14};  // of the process, and of its children that it reaped
constexpr size_t kResident = 21;

enum Place : size_t { kCpu, kMemory, kFaults, kRead, kWritten, kPlaceCount };

class RunSource final : public TelemetrySource {
 public:
  explicit RunSource(const SourceOptions& options) : options_(options) {
    if (options_.processes == nullptr) return;
    columns_ = {{"run.cpu", "ms", true},
                {"run.memory", "bytes", false},
                {"run.major_faults", "events", true},
                {"run.read", "bytes", true},
                {"run.written", "bytes", true}};
  }

  const std::vector<telemetry::Column>& columns() const override { return columns_; }

  void Sample(std::span<int64_t> values) override {
    if (sample_count_ < kEagerSamples || sample_count_ % kSamplesPerSearch == 0) Search();
    ++sample_count_;
    std::array<int64_t, kPlaceCount> sums{};
    bool is_any_known = false;
    bool is_io_known = true;
    for (auto& [pid, process] : processes_) {
      process.resident = 0;  // of one that has ended; its counts stay
      ReadStat(&process);
      ReadIo(&process);
      is_any_known = is_any_known || process.is_known;
      sums[kMemory] += process.resident;
      sums[kFaults] += process.faults;
      if (!process.is_alive) continue;  // else it is in its parent's counts
      is_io_known = is_io_known && process.is_io_known;
      sums[kRead] += process.read;
      sums[kWritten] += process.written;
      sums[kCpu] += process.cpu_ms;
    }
    if (is_any_known) std::copy_n(sums.begin(), size_t{kRead}, values.begin());
    // Of one that does not tell, nothing is known of the whole.
    if (is_any_known && is_io_known) std::copy_n(sums.begin() + kRead, 2, values.begin() + kRead);
  }

 private:
  struct Process {
    KernelFile stat;
    KernelFile io;
    bool is_alive = false;
    bool is_known = false;
    bool is_io_known = false;
    int64_t cpu_ms = 0;
    int64_t resident = 0;
    int64_t faults = 0;
    int64_t read = 0;
    int64_t written = 0;
  };

  void Search() {
    for (const pid_t pid : options_.processes()) {
      if (processes_.contains(pid)) continue;
      const std::string directory = absl::StrCat(options_.proc, "/", pid);
      processes_.emplace(pid, Process{.stat = KernelFile(directory + "/stat"),
                                      .io = KernelFile(directory + "/io")});
    }
  }

  void ReadStat(Process* process) const {
    const absl::string_view text = process->stat.Read();
    process->is_alive = !text.empty();
    const size_t name_end = text.rfind(')');
    if (name_end == absl::string_view::npos) return;
    const std::vector<absl::string_view> words = WordsOf(text.substr(name_end + 1));
    if (words.size() <= kResident) return;
    process->is_known = true;
    int64_t ticks = 0;
    for (const size_t word : kTimeWords)
      ticks += NumberOf(words[word]);
    process->cpu_ms = ticks * 1000 / options_.ticks_per_second;
    process->faults = NumberOf(words[kMajorFaults]);
    process->resident = NumberOf(words[kResident]) * sysconf(_SC_PAGESIZE);
  }

  // Where this process may: "read_bytes: 4096".
  static void ReadIo(Process* process) {
    process->is_io_known = false;
    for (const absl::string_view line : absl::StrSplit(process->io.Read(), '\n')) {
      const std::vector<absl::string_view> words = WordsOf(line);
      if (words.size() != 2) continue;
      if (words[0] == "read_bytes:") process->read = NumberOf(words[1]);
      if (words[0] == "write_bytes:") process->written = NumberOf(words[1]);
      process->is_io_known = true;
    }
  }

  const SourceOptions options_;
  std::vector<telemetry::Column> columns_;
  std::map<pid_t, Process> processes_;
  int sample_count_ = 0;
};

}  // namespace

std::unique_ptr<TelemetrySource> MakeRunSource(const SourceOptions& options) {
  return std::make_unique<RunSource>(options);
}

}  // namespace assay::agent
