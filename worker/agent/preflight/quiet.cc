#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "common/clock.h"
#include "common/file.h"
#include "worker/agent/preflight/check.h"

namespace assay::agent {
namespace {

struct ProcessTime {
  std::string name;
  int64_t ticks = 0;
};

struct Usage {
  int64_t busy_ticks = 0;    // of all cores: not idle, not waiting for a disk, not stolen
  int64_t stolen_ticks = 0;  // by the host of a virtual machine
  int64_t swapped_pages = 0;
  std::map<int, ProcessTime> processes;
};

std::vector<std::string> Fields(const std::string& text) {
  return absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

int64_t Number(const std::vector<std::string>& fields, size_t index) {
  int64_t number = 0;
  return index < fields.size() && absl::SimpleAtoi(fields[index], &number) ? number : 0;
}

// "77 (a name) S 1 77 ..."; fields 14 and 15 are its time.
ProcessTime ReadProcess(int pid) {
  const absl::StatusOr<std::string> stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  if (!stat.ok()) return {};
  const size_t open = stat->find('(');
  const size_t close = stat->rfind(')');
  if (open == std::string::npos || close == std::string::npos) return {};
  const std::vector<std::string> rest = Fields(stat->substr(close + 1));
  return {.name = stat->substr(open + 1, close - open - 1),
          .ticks = Number(rest, 11) + Number(rest, 12)};
}

Usage ReadUsage() {
  Usage usage;
  const absl::StatusOr<std::string> stat = ReadFile("/proc/stat");
  // cpu user nice system idle iowait irq softirq steal guest guest_nice
  const std::vector<std::string> cpu = Fields(stat.ok() ? stat->substr(0, stat->find('\n')) : "");
  for (const size_t field : {1U, 2U, 3U, 6U, 7U})
    usage.busy_ticks += Number(cpu, field);
  usage.stolen_ticks = Number(cpu, 8);
  const absl::StatusOr<std::string> vmstat = ReadFile("/proc/vmstat");
  const std::vector<std::string> words = Fields(vmstat.ok() ? *vmstat : "");
  for (size_t i = 0; i + 1 < words.size(); i += 2)
    if (words[i] == "pswpin" || words[i] == "pswpout") usage.swapped_pages += Number(words, i + 1);
  for (const std::string& name : ListDirectory("/proc").value_or(std::vector<std::string>{})) {
    int pid = 0;
    if (absl::SimpleAtoi(name, &pid)) usage.processes[pid] = ReadProcess(pid);
  }
  return usage;
}

// "stress (77) 0.98" of the process that took most; empty: none took anything.
std::string Busiest(const Usage& before, const Usage& after, double ticks) {
  int busiest = 0;
  int64_t most = 0;
  for (const auto& [pid, process] : after.processes) {
    const auto it = before.processes.find(pid);
    const int64_t taken = process.ticks - (it == before.processes.end() ? 0 : it->second.ticks);
    if (pid == getpid() || taken <= most) continue;
    busiest = pid;
    most = taken;
  }
  if (most == 0) return "";
  return absl::StrFormat("%s (process %d) took %.2f of a core", after.processes.at(busiest).name,
                         busiest, static_cast<double>(most) / ticks);
}

}  // namespace

CheckResult CheckClock() {
  timex state{};
  const int answer = adjtimex(&state);
  if (answer < 0) return NotMeasured("clock", "the kernel does not tell of its clock");
  const bool is_synchronised = (state.status & STA_UNSYNC) == 0 && answer != TIME_ERROR;
  return NotMeasured(
      "clock", is_synchronised
                   ? absl::StrFormat("the kernel's clock is synchronised, to %.3f ms by its word",
                                     static_cast<double>(state.maxerror) / 1000)
                   : std::string("the kernel says that its clock is not synchronised"));
}

CheckResult CheckQuiet(const CheckOptions& options) {
  const RealClock clock;
  const MonoTime begin = clock.Mono();
  const Usage before = ReadUsage();
  std::this_thread::sleep_for(absl::ToChronoMilliseconds(options.quiet_time));
  const Usage after = ReadUsage();
  const double ticks =
      absl::ToDoubleSeconds(clock.Mono() - begin) * static_cast<double>(sysconf(_SC_CLK_TCK));
  const int64_t own = after.processes.contains(getpid()) && before.processes.contains(getpid())
                          ? after.processes.at(getpid()).ticks - before.processes.at(getpid()).ticks
                          : 0;
  const double cores = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  CheckResult result{.check = "quiet",
                     .is_measured = true,
                     .value = static_cast<double>(std::max<int64_t>(
                                  after.busy_ticks - before.busy_ticks - own, 0)) /
                              ticks,
                     .unit = "cores"};
  const std::string busiest = Busiest(before, after, ticks);
  const double stolen = static_cast<double>(after.stolen_ticks - before.stolen_ticks) / ticks;
  result.detail =
      absl::StrFormat("busy for others, of %.0f cores, over %.1f s; stolen by a host %.2f%s%s",
                      cores, ticks / static_cast<double>(sysconf(_SC_CLK_TCK)), stolen,
                      busiest.empty() ? "" : "; ", busiest);
  std::vector<std::string> problems;
  if (result.value + stolen > std::max(0.1, cores / 20))
    problems.push_back(absl::StrFormat("%.2f of %.0f cores work for others%s%s",
                                       result.value + stolen, cores, busiest.empty() ? "" : ": ",
                                       busiest));
  if (const int64_t pages = after.swapped_pages - before.swapped_pages; pages > 0)
    problems.push_back(absl::StrCat(pages, " pages were swapped"));
  result.problem = absl::StrJoin(problems, "; ");
  return result;
}

}  // namespace assay::agent
