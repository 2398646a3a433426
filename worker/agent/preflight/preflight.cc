#include "worker/agent/preflight/preflight.h"

#include <sched.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"

#include "common/clock.h"
#include "common/file.h"
#include "common/json_document.h"
#include "common/status.h"

namespace assay::agent {
namespace {

struct Check {
  const char* name;
  CheckResult (*run)(const CheckOptions& options);
};

constexpr Check kChecks[] = {
    {"quiet", CheckQuiet},
    {"clock", [](const CheckOptions&) { return CheckClock(); }},
    {"gpu", CheckGpu},
    {"memory", CheckMemory},
    {"compute", CheckCompute},
    {"dataset-disk", CheckDatasetDisk},
    {"stage-disk", CheckStageDisk},
    {"stage-space", CheckStageSpace},
};

int UsableCores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

void StayOn(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores)
    if (core >= 0 && core < CPU_SETSIZE) CPU_SET(static_cast<size_t>(core), &set);
  sched_setaffinity(0, sizeof(set), &set);  // a core that is not there: then anywhere
}

// True if each member that is there is of its type.
bool IsCheck(const nlohmann::json& check) {
  if (!check.is_object() || !check.contains("check")) return false;
  const auto is_text = [&check](const char* key) {
    return !check.contains(key) || check[key].is_string();
  };
  return is_text("check") && is_text("unit") && is_text("detail") && is_text("problem") &&
         (!check.contains("is_measured") || check["is_measured"].is_boolean()) &&
         (!check.contains("value") || check["value"].is_number());
}

absl::Status CheckNames(const std::vector<std::string>& names) {
  const std::vector<std::string>& known = PreflightChecks();
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      return absl::InvalidArgumentError(
          absl::StrCat("there is no check ", name, "; choose among ", absl::StrJoin(known, ", ")));
  return absl::OkStatus();
}

template <typename Number>
absl::Status ReadPositive(absl::string_view flag, absl::string_view text, Number* number) {
  if (absl::SimpleAtoi(text, number) && *number > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": expected a number above 0, found ", text));
}

absl::Status SetFlag(absl::string_view flag, absl::string_view value, PreflightFlags* flags) {
  int number = 0;
  CheckOptions& options = flags->options;
  if (flag == "--checks") {
    flags->checks = absl::StrSplit(value, ',');
    return CheckNames(flags->checks);
  }
  if (flag == "--dataset") {
    options.dataset_directory = std::string(value);
  } else if (flag == "--stage") {
    options.stage_directory = std::string(value);
  } else if (flag == "--trainer") {
    options.trainer_program = std::string(value);
  } else if (flag == "--trainer_environment") {
    options.trainer_environment.emplace_back(value);
  } else if (flag == "--output") {
    flags->output_path = std::string(value);
  } else if (flag == "--threads") {
    return ReadPositive(flag, value, &options.thread_count);
  } else if (flag == "--disk_mib") {
    RETURN_IF_ERROR(ReadPositive(flag, value, &number));
    options.disk_bytes = int64_t{number} << 20;
  } else if (flag == "--memory_mib") {
    RETURN_IF_ERROR(ReadPositive(flag, value, &number));
    options.memory_bytes = int64_t{number} << 20;
  } else if (flag == "--time_limit") {
    RETURN_IF_ERROR(ReadPositive(flag, value, &number));
    flags->time_limit = absl::Seconds(number);
  } else if (flag == "--cores") {
    for (const absl::string_view core : absl::StrSplit(value, ',')) {
      if (!absl::SimpleAtoi(core, &number) || number < 0)
        return absl::InvalidArgumentError(absl::StrCat("--cores: expected 0,1,..., found ", value));
      flags->cores.push_back(number);
    }
  } else {
    return absl::InvalidArgumentError(absl::StrCat("unknown argument ", flag));
  }
  return absl::OkStatus();
}

}  // namespace

const char kPreflightUsage[] =
    R"(Usage: assay-worker preflight [--json] [--checks=NAME,...] [--dataset=DIR] [--stage=DIR]
       [--threads=N] [--cores=0,1,...] [--disk_mib=2048] [--memory_mib=N] [--time_limit=60]

Checks this node as before a set of runs, and prints what it measures. 0: nothing is wrong; 1: a check
has found a problem. What is slow for a node of its type only the coordinator can say.

  quiet         what works for others than Assay, over 5 s
  clock         what the kernel says of its clock
  gpu           errors, throttling, PCIe lanes and foreign memory of NVIDIA GPUs (how many are well)
  memory        triad over 4 x the last-level cache, all threads (GB/s)
  compute       5 s of fp32 matrix product through oneDNN (GFLOP/s), and the cores' frequency
  dataset-disk  2 GiB of direct reads of the files below --dataset (MB/s)
  stage-disk    2 GiB written to --stage, synced and read back (MB/s)
  stage-space   what is free there (GB), and with --staged whether the dataset fits
)";

const std::vector<std::string>& PreflightChecks() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Check& check : kChecks)
      all.emplace_back(check.name);
    return all;
  }();
  return names;
}

absl::StatusOr<PreflightFlags> ParsePreflightFlags(const std::vector<std::string>& arguments) {
  PreflightFlags flags{.checks = PreflightChecks()};
  flags.options.thread_count = 0;
  for (const std::string& argument : arguments) {
    if (argument == "--json") {
      flags.is_json = true;
    } else if (argument == "--staged") {
      flags.options.is_staged = true;
    } else {
      const std::vector<std::string> parts = absl::StrSplit(argument, absl::MaxSplits('=', 1));
      if (parts.size() != 2)
        return absl::InvalidArgumentError(absl::StrCat("unknown argument ", argument));
      RETURN_IF_ERROR(SetFlag(parts[0], parts[1], &flags));
    }
  }
  if (flags.options.trainer_program.empty()) {
    ASSIGN_OR_RETURN(const std::string directory, ProgramDirectory());
    flags.options.trainer_program = JoinPath(directory, "assay-train");
  }
  return flags;
}

std::vector<std::string> ArgumentsOf(const PreflightFlags& flags) {
  const CheckOptions& options = flags.options;
  std::vector<std::string> arguments{
      absl::StrCat("--checks=", absl::StrJoin(flags.checks, ",")),
      absl::StrCat("--trainer=", options.trainer_program),
      absl::StrCat("--threads=", options.thread_count),
      absl::StrCat("--time_limit=", absl::ToInt64Seconds(flags.time_limit))};
  const auto add = [&arguments](absl::string_view flag, const std::string& value) {
    if (!value.empty()) arguments.push_back(absl::StrCat(flag, "=", value));
  };
  add("--dataset", options.dataset_directory);
  add("--stage", options.stage_directory);
  add("--output", flags.output_path);
  add("--cores", absl::StrJoin(flags.cores, ","));
  for (const std::string& variable : options.trainer_environment)
    add("--trainer_environment", variable);
  if (options.is_staged) arguments.emplace_back("--staged");
  if (flags.is_json) arguments.emplace_back("--json");
  return arguments;
}

std::vector<CheckResult> RunPreflight(const PreflightFlags& flags) {
  StayOn(flags.cores);
  CheckOptions options = flags.options;
  if (options.thread_count == 0) options.thread_count = UsableCores();
  const RealClock clock;
  const MonoTime end = clock.Mono() + flags.time_limit;
  std::vector<CheckResult> results;
  for (const Check& check : kChecks) {
    if (std::find(flags.checks.begin(), flags.checks.end(), check.name) == flags.checks.end())
      continue;
    results.push_back(clock.Mono() < end ? check.run(options)
                                         : NotMeasured(check.name, "no time was left for it"));
  }
  return results;
}

std::string PreflightJson(const std::vector<CheckResult>& results) {
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  for (const CheckResult& result : results) {
    nlohmann::ordered_json check{{"check", result.check}, {"is_measured", result.is_measured}};
    if (result.is_measured) {
      check["value"] = result.value;
      check["unit"] = result.unit;
    }
    check["detail"] = result.detail;
    check["problem"] = result.problem;
    checks.push_back(std::move(check));
  }
  return nlohmann::ordered_json{{"checks", checks}}.dump(2, ' ', false,
                                                         nlohmann::json::error_handler_t::replace) +
         "\n";
}

absl::StatusOr<std::vector<CheckResult>> ParsePreflightJson(absl::string_view text) {
  const auto json = ParseJsonDocument<nlohmann::json>(text);
  std::vector<CheckResult> results;
  if (!json.is_object() || !json.contains("checks") || !json["checks"].is_array())
    return absl::InvalidArgumentError("what the pre-flight has left is not its JSON");
  for (const nlohmann::json& check : json["checks"]) {
    if (!IsCheck(check))
      return absl::InvalidArgumentError("a check of the pre-flight's JSON is not one");
    results.push_back({.check = check.value("check", ""),
                       .is_measured = check.value("is_measured", false),
                       .value = check.value("value", 0.0),
                       .unit = check.value("unit", ""),
                       .detail = check.value("detail", ""),
                       .problem = check.value("problem", "")});
  }
  return results;
}

std::string PreflightText(const std::vector<CheckResult>& results) {
  std::string text;
  for (const CheckResult& result : results) {
    const std::string value =
        result.is_measured ? absl::StrFormat("%.2f %s", result.value, result.unit) : "-";
    absl::StrAppend(&text, absl::StrFormat("%-13s %16s  %s\n", result.check, value, result.detail));
    if (!result.problem.empty()) absl::StrAppend(&text, "  PROBLEM: ", result.problem, "\n");
  }
  return text;
}

}  // namespace assay::agent
