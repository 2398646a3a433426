#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/file.h"
#include "worker/agent/preflight/ask.h"
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
  const int thread_count = std::max(options.thread_count, 1);
  const absl::Duration patience = options.compute_time + options.patience;
  std::vector<std::string> environment = options.trainer_environment;
  environment.push_back(absl::StrCat("OMP_NUM_THREADS=", thread_count));
  const CoreState before = ReadCores();
  const absl::StatusOr<Answer> answer =
      Ask({options.trainer_program,
           absl::StrCat("--matrix_product=", absl::ToDoubleSeconds(options.compute_time))},
          environment, patience);
  const CoreState after = ReadCores();
  if (absl::IsDeadlineExceeded(answer.status()))
    return {.check = name,
            .detail = Describe(before, after),
            .problem = absl::StrCat("the matrix product has not ended within ",
                                    absl::FormatDuration(patience))};
  if (!answer.ok()) return NotMeasured(name, std::string(answer.status().message()));
  double rate = 0;
  if (answer->exit_code != 0 || !absl::SimpleAtod(answer->text, &rate))
    return NotMeasured(name, absl::StrCat(options.trainer_program, " ended with ",
                                          answer->exit_code, ": ", answer->text.substr(0, 200)));
  return {.check = name,
          .is_measured = true,
          .value = rate,
          .unit = "GFLOP/s",
          .detail = absl::StrCat("fp32 matrix product on ", thread_count, " threads; ",
                                 Describe(before, after))};
}

}  // namespace assay::agent
