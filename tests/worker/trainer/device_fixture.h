// Whole runs of one rank on a device faked on the CPU, which comes as a plug-in.

#ifndef TESTS_WORKER_TRAINER_DEVICE_FIXTURE_H_
#define TESTS_WORKER_TRAINER_DEVICE_FIXTURE_H_

#include <cstdlib>
#include <string>
#include <utility>

#include "gtest/gtest.h"

#include "common/dataset/cosmo_dataset.h"
#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/trainer/loop_fixture.h"
#include "tests/worker/trainer/run_specs.h"

namespace assay::testing {

inline constexpr int kDeviceTrainSamples = 6, kDeviceEvalSamples = 4, kDeviceEpochs = 3;

class DeviceFixture : public LoopFixture {
 protected:
  static void SetUpTestSuite() {
    const char* const folder = std::getenv("ASSAY_BIN_DIR");
    const std::string plugin =
        JoinPath(folder == nullptr ? "." : folder, "../tests/libfake_cuda.so");
    ASSERT_TRUE(FileExists(plugin)) << plugin;
    ASSERT_EQ(setenv("ASSAY_CUDA_PLUGIN", plugin.c_str(), 1), 0);
    dataset_ = new TempDir;
    dataset::CosmoDatasetSpec spec;
    spec.parameters.mode = dataset::CosmoMode::kBeacon;
    spec.parameters.edge = 32;
    spec.parameters.seed = 5;
    spec.train_samples = kDeviceTrainSamples;
    spec.validation_samples = kDeviceEvalSamples;
    ASSERT_THAT(dataset::GenerateCosmoDataset(dataset_->Path("beacon"), spec, /*threads=*/2),
                IsOk());
  }
  static void TearDownTestSuite() {
    delete dataset_;
    dataset_ = nullptr;
  }
  void TearDown() override {
    for (const char* name : {"ASSAY_FAKE_LATE", "ASSAY_FAKE_ENGINES", "ASSAY_FAKE_ENGINES_1"})
      unsetenv(name);
  }

  // Batches of two; evaluated in threes, so that the last batch is filled up.
  v1::RunSpec Run() const {
    v1::RunSpec run = Logged(SmallRun());
    run.mutable_trainer()->set_backend("cuda");
    run.set_epoch_count_max(kDeviceEpochs);
    run.set_quality_target(1e-6);
    run.set_progress_path(dir_.Path("progress"));
    run.mutable_dataset()->set_path(dataset_->Path("beacon"));
    run.mutable_dataset()->set_train_sample_count(kDeviceTrainSamples);
    run.mutable_dataset()->set_eval_sample_count(kDeviceEvalSamples);
    run.clear_hyperparameters();
    const std::pair<const char*, const char*> values[] = {{"base_filter_count", "1"},
                                                          {"global_batch_size", "2"},
                                                          {"opt_learning_rate_warmup_epochs", "0"},
                                                          {"opt_base_learning_rate", "0.005"},
                                                          {"local_eval_batch_size", "3"},
                                                          {"checkpoint_interval_steps", "100"}};
    for (const auto& [key, json] : values)
      SetHyperparameter(&run, key, json);
    return run;
  }

 private:
  inline static TempDir* dataset_ = nullptr;
};

}  // namespace assay::testing

#endif  // TESTS_WORKER_TRAINER_DEVICE_FIXTURE_H_
