// Assay's side of pytorch_ratio.py: steps of one model, as many at a time as its input asks for.
//
//   step_probe BACKEND train|eval BATCH cosmoflow EDGE
//   step_probe BACKEND train|eval BATCH deepcam HEIGHT WIDTH
//
// Prints a line "ready" when the model stands. Then each line of standard input is a number of
// steps, and the answer is one line with the time of each in milliseconds. Ends with its input.
// CosmoFlow trains with SGD, DeepCAM with AdamW (PyTorch has no LAMB to compare with).

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/status.h"
#include "tests/bench/step_model.h"

namespace assay {
namespace {

struct Request {
  std::string backend;
  bool is_training = false;
  ModelSpec spec;
};

absl::StatusOr<int64_t> ParseExtent(const std::string& text) {
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value)) return value;
  return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not a number"));
}

absl::StatusOr<Request> Parse(const std::vector<std::string>& words) {
  const bool is_cosmoflow = words.size() == 5 && words[3] == "cosmoflow";
  const bool is_deepcam = words.size() == 6 && words[3] == "deepcam";
  if (!is_cosmoflow && !is_deepcam)
    return absl::InvalidArgumentError(
        "want BACKEND train|eval BATCH, then cosmoflow EDGE or deepcam HEIGHT WIDTH");
  if (words[1] != "train" && words[1] != "eval")
    return absl::InvalidArgumentError(absl::StrCat("want train or eval, found ", words[1]));
  Request request = {.backend = words[0], .is_training = words[1] == "train"};
  ModelSpec& spec = request.spec;
  spec.name = words[3];
  spec.options.reduction.is_alone = true;
  ASSIGN_OR_RETURN(spec.cosmoflow.batch, ParseExtent(words[2]));
  spec.deepcam.batch = spec.cosmoflow.batch;
  if (is_cosmoflow) {
    ASSIGN_OR_RETURN(spec.cosmoflow.cube_edge, ParseExtent(words[4]));
  } else {
    ASSIGN_OR_RETURN(spec.deepcam.height, ParseExtent(words[4]));
    ASSIGN_OR_RETURN(spec.deepcam.width, ParseExtent(words[5]));
    spec.options.optimizer.kind = OptimizerOptions::Kind::kAdamW;
    spec.options.optimizer.weight_decay = 0.01;
  }
  return request;
}

absl::StatusOr<double> TimeStep(bool is_training, StepModel* model) {
  const auto start = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(is_training ? model->Train() : model->Evaluate());
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  return time.count();
}

absl::Status Serve(const std::vector<std::string>& words) {
  ASSIGN_OR_RETURN(const Request request, Parse(words));
  ASSIGN_OR_RETURN(const std::unique_ptr<StepModel> model,
                   StepModel::Make(request.spec, request.backend));
  std::cout << "ready" << std::endl;
  int steps = 0;
  while (std::cin >> steps) {
    std::vector<double> times_ms;
    for (int i = 0; i < steps; ++i) {
      ASSIGN_OR_RETURN(const double time_ms, TimeStep(request.is_training, model.get()));
      times_ms.push_back(time_ms);
    }
    std::cout << absl::StrJoin(times_ms, " ") << std::endl;
  }
  return absl::OkStatus();
}

int Main(const std::vector<std::string>& words) {
  const absl::Status status = Serve(words);
  if (status.ok()) return 0;
  std::cerr << "step_probe: " << status << "\n";
  return 1;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  return assay::Main(std::vector<std::string>(argv + 1, argv + argc));
}
