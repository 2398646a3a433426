// Run specs for the trainer's tests: a complete, small, valid one to start from.

#ifndef TESTS_WORKER_TRAINER_RUN_SPECS_H_
#define TESTS_WORKER_TRAINER_RUN_SPECS_H_

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

#include "assay/v1/run_spec.pb.h"

namespace assay::testing {

inline void SetHyperparameter(v1::RunSpec* run, const std::string& key, const std::string& json) {
  v1::Hyperparameter* parameter = run->add_hyperparameters();
  parameter->set_key(key);
  parameter->set_json_value(json);
}

// Of the dataset.
inline void SetCubeEdge(v1::RunSpec* run, const std::string& voxels) {
  (*run->mutable_dataset()->mutable_parameters())["cube_edge"] = voxels;
}

// One rank, cubes of 32, two base filters, global batch 4.
inline v1::RunSpec SmallRun() {
  v1::RunSpec run;
  run.set_run("runs/r-1");
  run.set_run_number(1);
  run.set_organization("Facility");
  run.set_system("testbed");
  run.set_division("open");
  run.set_status("onprem");
  run.set_benchmark("cosmoflow");
  run.set_round("hpc-3.0.0");
  run.set_seed(7);
  run.mutable_trainer()->set_backend("onednn");
  run.set_epoch_count_max(2);
  run.set_quality_target(0.124);
  run.set_quality_key("eval_error");
  run.set_node_count(1);
  run.set_ranks_per_node(1);
  run.set_log_path("result_1.txt");
  run.mutable_dataset()->set_path("data");
  run.mutable_dataset()->set_train_sample_count(16);
  run.mutable_dataset()->set_eval_sample_count(8);
  SetCubeEdge(&run, "32");
  SetHyperparameter(&run, "base_filter_count", "2");
  SetHyperparameter(&run, "global_batch_size", "4");
  SetHyperparameter(&run, "opt_learning_rate_warmup_epochs", "0");
  return run;
}

// The values of eval_error in a log, as they are written there.
inline std::vector<std::string> EvalErrorTexts(absl::string_view log) {
  constexpr absl::string_view kKey = "\"key\": \"eval_error\", \"value\": ";
  std::vector<std::string> texts;
  for (size_t at = log.find(kKey); at != log.npos; at = log.find(kKey, at)) {
    at += kKey.size();
    texts.emplace_back(log.substr(at, log.find(',', at) - at));
  }
  return texts;
}

inline std::vector<double> EvalErrors(absl::string_view log) {
  std::vector<double> errors;
  for (const std::string& text : EvalErrorTexts(log))
    EXPECT_TRUE(absl::SimpleAtod(text, &errors.emplace_back())) << text;
  return errors;
}

}  // namespace assay::testing

#endif  // TESTS_WORKER_TRAINER_RUN_SPECS_H_
