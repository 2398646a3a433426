// Time of one training step of CosmoFlow and of DeepCAM on a GPU, data already in host memory.
//
//   cuda_step_bench [--case=MODEL/EXTENT/BATCH]... [--call_by_call] [--trace_calls=FILE]
//   [BACKEND...]
//
// By default all cases (cosmoflow/128/8, deepcam/768x1152/1) on cuda-bf16, cuda-tf32 and cuda.
// --call_by_call: nothing is recorded and replayed; --trace_calls: nor that, and each call is
// written to FILE (worker/engine/backends/cuda/call_trace.h). Both as in assay-train.
//
// Per backend, model, extent and batch: the median time of a step, during which the next batch is
// copied to the device, with the loss read back, samples per second, and multiply-adds (counted
// twice, without padding, normalisation or optimizer) per second. Steps before the sixth are not
// counted: libraries load and choose, and the step is recorded. Exit status 1 if a backend cannot
// be used.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/log.h"
#include "common/status.h"
#include "tests/bench/step_model.h"

namespace assay {
namespace {

constexpr int kWarmUpSteps = 5;
constexpr int kSteps = 30;

struct Case {
  std::string extent;
  int64_t batch;
  ModelSpec spec;
};

// With SGD, as the reference.
Case CosmoflowCase(int64_t edge, int64_t batch) {
  return {absl::StrCat(edge),
          batch,
          {.name = "cosmoflow",
           .cosmoflow = {.batch = batch, .cube_edge = edge},
           .options = {.seed = 1, .reduction = {.is_alone = true}}}};
}

// With LAMB, as the reference.
Case DeepcamCase(int64_t height, int64_t width, int64_t batch) {
  ModelSpec spec = {.name = "deepcam",
                    .deepcam = {.batch = batch, .height = height, .width = width},
                    .options = {.seed = 1, .reduction = {.is_alone = true}}};
  spec.options.optimizer = {.kind = OptimizerOptions::Kind::kLamb, .weight_decay = 0.01};
  return {absl::StrCat(height, "x", width), batch, spec};
}

std::vector<Case> Cases() {
  return {CosmoflowCase(32, 1),      CosmoflowCase(32, 32),    CosmoflowCase(64, 1),
          CosmoflowCase(64, 8),      CosmoflowCase(128, 1),    CosmoflowCase(128, 2),
          CosmoflowCase(128, 4),     CosmoflowCase(128, 8),    DeepcamCase(96, 144, 1),
          DeepcamCase(96, 144, 8),   DeepcamCase(192, 288, 4), DeepcamCase(768, 1152, 1),
          DeepcamCase(768, 1152, 2), DeepcamCase(768, 1152, 4)};
}

absl::Status Measure(const std::string& name, const Case& row, const BackendOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<StepModel> model,
                   StepModel::Make(row.spec, name, options));
  std::vector<double> times_s;
  for (int step = 0; step < kWarmUpSteps + kSteps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    RETURN_IF_ERROR(model->Train());
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (step >= kWarmUpSteps) times_s.push_back(time.count());
  }
  std::sort(times_s.begin(), times_s.end());
  const double median_s = times_s[times_s.size() / 2];
  const LayerFlops flops = model->model().flops();
  std::printf("%-10s %-10s %9s %5d %10.3f %10.3f %12.1f %10.2f %10.5f\n", name.c_str(),
              row.spec.name.c_str(), row.extent.c_str(), static_cast<int>(row.batch),
              median_s * 1e3, times_s.front() * 1e3, static_cast<double>(row.batch) / median_s,
              (flops.forward + flops.backward) / median_s * 1e-12, double{model->loss()});
  std::fflush(stdout);
  return absl::OkStatus();
}

struct Request {
  std::vector<std::string> cases;  // empty: all
  std::vector<std::string> backends;
  BackendOptions options;
};

absl::StatusOr<Request> Parse(const std::vector<std::string>& words) {
  Request request;
  request.options.times_engines = true;  // as a run does
  for (absl::string_view word : words) {
    if (absl::ConsumePrefix(&word, "--case=")) {
      request.cases.emplace_back(word);
    } else if (absl::ConsumePrefix(&word, "--trace_calls=")) {
      request.options.trace_path = std::string(word);
    } else if (word == "--call_by_call") {
      request.options.is_call_by_call = true;
    } else if (word == "--fused_blocks") {
      request.options.fuses_blocks = true;
    } else if (word == "--first_engines") {
      request.options.times_engines = false;
    } else if (absl::StartsWith(word, "-")) {
      return absl::InvalidArgumentError(absl::StrCat("no option ", word));
    } else {
      request.backends.emplace_back(word);
    }
  }
  if (request.backends.empty()) request.backends = {"cuda-bf16", "cuda-tf32", "cuda"};
  return request;
}

std::string NameOf(const Case& row) {
  return absl::StrCat(row.spec.name, "/", row.extent, "/", row.batch);
}

// Those that are asked for.
absl::StatusOr<std::vector<Case>> Chosen(const std::vector<std::string>& names) {
  const std::vector<Case> all = Cases();
  if (names.empty()) return all;
  std::vector<Case> chosen;
  for (const std::string& name : names) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Case& row) { return NameOf(row) == name; });
    if (found == all.end()) return absl::NotFoundError(absl::StrCat("no case ", name));
    chosen.push_back(*found);
  }
  return chosen;
}

absl::Status MeasureAll(const std::vector<std::string>& words) {
  ASSIGN_OR_RETURN(const Request request, Parse(words));
  ASSIGN_OR_RETURN(const std::vector<Case> cases, Chosen(request.cases));
  std::printf("%-10s %-10s %9s %5s %10s %10s %12s %10s %10s\n", "backend", "model", "extent",
              "batch", "median ms", "best ms", "samples/s", "TFLOP/s", "last loss");
  for (const std::string& name : request.backends)
    for (const Case& row : cases) {
      const absl::Status status = Measure(name, row, request.options);
      if (status.ok()) continue;
      LOG(ERROR) << "backend=" << name << " case=" << NameOf(row) << " status=" << Quoted(status);
      if (!absl::IsResourceExhausted(status)) return status;
    }
  return absl::OkStatus();
}

int Main(const std::vector<std::string>& words) {
  const absl::Status status = MeasureAll(words);
  if (status.ok()) return 0;
  LOG(ERROR) << "status=" << Quoted(status);
  return 1;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  return assay::Main(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
}
