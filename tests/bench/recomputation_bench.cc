// What training in less memory costs in time: steps of one model within one limit.
//
//   recomputation_bench BACKEND LIMIT_MIB STEPS cosmoflow BATCH EDGE
//   recomputation_bench BACKEND LIMIT_MIB STEPS deepcam BATCH HEIGHT WIDTH
//
// A limit of 0 is none; one that is too low ends with the least. Prints one line: what training
// takes by Model::training_bytes(), what is recomputed, how long choosing and building took, and
// the median and the least time of a step after one to warm up, and the least processor time of one
// (with one thread that is the time on an idle machine). CosmoFlow trains with SGD, DeepCAM
// with LAMB.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "tests/bench/step_model.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

absl::Status Measure(const std::vector<std::string>& words) {
  const bool is_cosmoflow = words.size() == 6 && words[3] == "cosmoflow";
  const bool is_deepcam = words.size() == 7 && words[3] == "deepcam";
  if (!is_cosmoflow && !is_deepcam)
    return absl::InvalidArgumentError(
        "want BACKEND LIMIT_MIB STEPS, then cosmoflow BATCH EDGE or deepcam BATCH HEIGHT WIDTH");
  std::vector<int64_t> numbers(words.size());
  for (const size_t at : {1U, 2U, 4U, 5U, 6U})
    if (at < words.size() && !absl::SimpleAtoi(words[at], &numbers[at]))
      return absl::InvalidArgumentError(absl::StrCat("\"", words[at], "\" is not a number"));
  const int64_t steps = numbers[2];
  if (steps < 1) return absl::InvalidArgumentError("want at least one step");

  ModelSpec spec = {.name = words[3], .memory_limit_bytes = numbers[1] << 20};
  spec.options.reduction.is_alone = true;
  if (is_cosmoflow) {
    spec.cosmoflow = {.batch = numbers[4], .cube_edge = numbers[5]};
  } else {
    spec.deepcam = {.batch = numbers[4], .height = numbers[5], .width = numbers[6]};
    spec.options.optimizer.kind = OptimizerOptions::Kind::kLamb;
  }
  const Clock::time_point start = Clock::now();
  ASSIGN_OR_RETURN(const std::unique_ptr<StepModel> model, StepModel::Make(spec, words[0]));
  const double build_ms = MillisecondsSince(start);
  RETURN_IF_ERROR(model->Train());
  std::vector<double> times_ms, processor_ms;
  for (int64_t i = 0; i < steps; ++i) {
    const Clock::time_point begin = Clock::now();
    const std::clock_t begin_ticks = std::clock();
    RETURN_IF_ERROR(model->Train());
    times_ms.push_back(MillisecondsSince(begin));
    processor_ms.push_back(1e3 * static_cast<double>(std::clock() - begin_ticks) / CLOCKS_PER_SEC);
  }
  std::sort(times_ms.begin(), times_ms.end());
  const Recomputation& chosen = model->model().recomputation();
  std::cout << "limit_mib=" << numbers[1]
            << " training_mib=" << (model->model().training_bytes() >> 20)
            << " segments=" << chosen.segments << " flops_share=" << chosen.flops_share
            << " build_ms=" << build_ms << " median_ms=" << times_ms[times_ms.size() / 2]
            << " least_ms=" << times_ms.front()
            << " processor_ms=" << *std::min_element(processor_ms.begin(), processor_ms.end())
            << " loss=" << model->loss() << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  const absl::Status status = assay::Measure({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::cerr << "recomputation_bench: " << status.message() << std::endl;
  return 1;
}
