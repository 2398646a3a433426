#include "worker/agent/telemetry/foreign_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "worker/agent/telemetry/kernel_file.h"

namespace assay::agent {
namespace {

constexpr int64_t kIntervalNs = 10'000'000'000;
constexpr int64_t kCostFactor = 2000;  // half of what telemetry may use of a core
constexpr int64_t kShareMin = 100;     // a hundredth of a processor
constexpr int kDepthMax = 10'000;      // of a tree of processes

// Words behind the name in /proc/PID/stat.
constexpr size_t kParent = 1;
constexpr size_t kUserTicks = 11;
constexpr size_t kSystemTicks = 12;
constexpr size_t kStartTicks = 19;

}  // namespace

absl::StatusOr<std::unique_ptr<ForeignWatch>> ForeignWatch::Create(const std::string& path,
                                                                   Options options) {
  UniqueFd file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kPrivateFile));
  if (!file.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  return std::unique_ptr<ForeignWatch>(new ForeignWatch(std::move(file), std::move(options)));
}

absl::Status ForeignWatch::Look(int64_t node_ns, bool is_last) {
  if (has_begun_ && node_ns < due_ns_ && !is_last) return absl::OkStatus();
  const int64_t cpu_ns = options_.cpu_ns();
  Processes now = Read();
  absl::Status status;
  if (has_begun_ && node_ns > looked_ns_)
    status = WriteAll(file_.get(),
                      telemetry::ForeignLine({.begin_ns = looked_ns_,
                                              .end_ns = node_ns,
                                              .largest = Largest(now, node_ns - looked_ns_)}));
  last_ = std::move(now);
  has_begun_ = true;
  looked_ns_ = node_ns;
  due_ns_ = node_ns + std::max(kIntervalNs, (options_.cpu_ns() - cpu_ns) * kCostFactor);
  return status;
}

// A process that ends meanwhile, or that this one may not see, is not there.
ForeignWatch::Processes ForeignWatch::Read() const {
  Processes processes;
  DIR* const folder = opendir(options_.proc.c_str());
  if (folder == nullptr) return processes;
  const auto close = absl::MakeCleanup([folder] { closedir(folder); });
  std::array<char, 1024> buffer;
  while (const dirent* const entry = readdir(folder)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry->d_name, &pid)) continue;
    const UniqueFd file(
        openat(dirfd(folder), absl::StrCat(entry->d_name, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open()) continue;
    const ssize_t size = read(file.get(), buffer.data(), buffer.size());
    if (size <= 0) continue;
    const absl::string_view text(buffer.data(), static_cast<size_t>(size));
    // "7 (any) name) R 1 ..."
    const size_t name_begin = text.find('(');
    const size_t name_end = text.rfind(')');
    if (name_end == absl::string_view::npos || name_begin >= name_end) continue;
    const std::vector<absl::string_view> words = WordsOf(text.substr(name_end + 1));
    if (words.size() <= kStartTicks) continue;
    processes[pid] = {.parent = static_cast<pid_t>(NumberOf(words[kParent])),
                      .name = std::string(text.substr(name_begin + 1, name_end - name_begin - 1)),
                      .start_ticks = NumberOf(words[kStartTicks]),
                      .cpu_ticks = NumberOf(words[kUserTicks]) + NumberOf(words[kSystemTicks])};
  }
  return processes;
}

bool ForeignWatch::IsForeign(pid_t pid, const Processes& now) const {
  if (options_.left_out.contains(pid)) return false;
  for (int depth = 0; depth < kDepthMax; ++depth) {
    if (pid == options_.own) return false;
    const auto found = now.find(pid);
    if (found == now.end()) return true;
    pid = found->second.parent;
  }
  return true;
}

std::vector<telemetry::ForeignProcess> ForeignWatch::Largest(const Processes& now,
                                                             int64_t passed_ns) const {
  std::vector<telemetry::ForeignProcess> largest;
  for (const auto& [pid, process] : now) {
    const auto before = last_.find(pid);
    const bool is_same = before != last_.end() && before->second.start_ticks == process.start_ticks;
    const int64_t ticks = process.cpu_ticks - (is_same ? before->second.cpu_ticks : 0);
    const int64_t cpu_ms = ticks * 1000 / options_.ticks_per_second;
    if (cpu_ms * 1'000'000 * kShareMin < passed_ns || !IsForeign(pid, now)) continue;
    largest.push_back({pid, process.name, cpu_ms});
  }
  std::stable_sort(largest.begin(), largest.end(),
                   [](const auto& a, const auto& b) { return a.cpu_ms > b.cpu_ms; });
  if (largest.size() > telemetry::kForeignCountMax) largest.resize(telemetry::kForeignCountMax);
  return largest;
}

std::set<pid_t> OwnAgent() {
  namespace fs = std::filesystem;
  std::set<pid_t> agents;
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  for (pid_t pid = getppid(); pid > 0 && !error && agents.size() < size_t{kDepthMax};) {
    const std::string folder = absl::StrCat("/proc/", pid);
    if (fs::read_symlink(folder + "/exe", error) != own || error) break;
    agents.insert(pid);
    const std::string text = ReadFile(folder + "/stat").value_or("");
    const size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) break;
    const std::vector<absl::string_view> words =
        WordsOf(absl::string_view(text).substr(name_end + 1));
    if (words.size() <= kParent || !absl::SimpleAtoi(words[kParent], &pid)) break;
  }
  return agents;
}

}  // namespace assay::agent
