#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/file.h"
#include "common/process.h"
#include "worker/agent/preflight/check.h"

namespace assay::agent {
namespace {

const char kCpuFiles[] = "/sys/devices/system/cpu/cpu";

int64_t ReadNumber(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  int64_t number = 0;
  if (!text.ok() || !absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &number)) return -1;
  return number;
}

// What the kernel says of the cores.
struct CoreState {
  double mhz = 0;               // mean; 0: it does not say
  int64_t throttle_count = -1;  // since the start, of all; -1: it does not say
};

CoreState ReadCores() {
  CoreState state;
  double sum_mhz = 0;
  int count = 0;
  const auto cores = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
  for (int core = 0; core < cores; ++core) {
    const std::string files = absl::StrCat(kCpuFiles, core);
    if (const int64_t khz = ReadNumber(files + "/cpufreq/scaling_cur_freq"); khz > 0) {
      sum_mhz += static_cast<double>(khz) / 1000;
      ++count;
    }
    if (const int64_t times = ReadNumber(files + "/thermal_throttle/core_throttle_count");
        times >= 0)
      state.throttle_count = std::max<int64_t>(state.throttle_count, 0) + times;
  }
  if (count == 0) {
    const absl::StatusOr<std::string> cpuinfo = ReadFile("/proc/cpuinfo");
    for (const absl::string_view line :
         absl::StrSplit(cpuinfo.ok() ? *cpuinfo : std::string(), '\n')) {
      const std::vector<absl::string_view> halves = absl::StrSplit(line, absl::MaxSplits(':', 1));
      double mhz = 0;
      if (halves.size() == 2 && absl::StartsWith(line, "cpu MHz") &&
          absl::SimpleAtod(absl::StripAsciiWhitespace(halves[1]), &mhz)) {
        sum_mhz += mhz;
        ++count;
      }
    }
  }
  if (count > 0) state.mhz = sum_mhz / count;
  return state;
}

std::string Describe(const CoreState& before, const CoreState& after) {
  std::string text;
  if (before.mhz > 0)
    absl::StrAppend(&text, "cores at ", static_cast<int64_t>(before.mhz), " MHz before and ",
                    static_cast<int64_t>(after.mhz), " after");
  if (before.throttle_count >= 0)
    absl::StrAppend(&text, text.empty() ? "" : ", ", "throttled ",
                    after.throttle_count - before.throttle_count, " times meanwhile");
  return text.empty() ? "the kernel tells neither frequency nor throttling" : text;
}

}  // namespace

CheckResult CheckCompute(const CheckOptions& options) {
  const std::string name = "compute";
  std::string path = (std::filesystem::temp_directory_path() / "assay_preflight_XXXXXX").string();
  const UniqueFd file(mkstemp(path.data()));
  if (!file.is_open()) return NotMeasured(name, absl::StrCat("cannot make ", path));
  const auto remove = absl::MakeCleanup([&path] { unlink(path.c_str()); });
  SpawnOptions spawn{
      .argv = {options.trainer_program,
               absl::StrCat("--matrix_product=", absl::ToDoubleSeconds(options.compute_time))},
      .environment = options.trainer_environment,
      .output_path = path,
      .process_group = getpgrp()};  // ends with this process
  spawn.environment.push_back(absl::StrCat("OMP_NUM_THREADS=", std::max(options.thread_count, 1)));
  const CoreState before = ReadCores();
  const absl::StatusOr<ProcessId> child = Spawn(spawn);
  if (!child.ok()) return NotMeasured(name, std::string(child.status().message()));
  const absl::StatusOr<int> code = WaitForExit(*child, options.compute_time + options.patience);
  const CoreState after = ReadCores();
  if (!code.ok()) {
    kill(child->pid, SIGKILL);
    WaitForExit(*child, absl::Seconds(5)).IgnoreError();
    return {.check = name,
            .detail = Describe(before, after),
            .problem = absl::StrCat("the matrix product has not ended within ",
                                    absl::FormatDuration(options.compute_time + options.patience))};
  }
  const std::string answer(absl::StripAsciiWhitespace(ReadFile(path).value_or("")));
  double rate = 0;
  if (*code != 0 || !absl::SimpleAtod(answer, &rate))
    return NotMeasured(name, absl::StrCat(options.trainer_program, " ended with ", *code, ": ",
                                          answer.substr(0, 200)));
  return {.check = name,
          .is_measured = true,
          .value = rate,
          .unit = "GFLOP/s",
          .detail = absl::StrCat("fp32 matrix product on ", std::max(options.thread_count, 1),
                                 " threads; ", Describe(before, after))};
}

}  // namespace assay::agent
