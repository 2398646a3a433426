// Whole runs of one rank in the test's process, with a log in a directory of the test.

#ifndef TESTS_WORKER_TRAINER_LOOP_FIXTURE_H_
#define TESTS_WORKER_TRAINER_LOOP_FIXTURE_H_

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "assay/v1/run_spec.pb.h"

#include "common/clock.h"
#include "common/file.h"
#include "tests/support/temp_dir.h"
#include "worker/trainer/loop.h"
#include "worker/trainer/spec.h"

namespace assay::testing {

class LoopFixture : public ::testing::Test {
 protected:
  // `run` with its log where Log() reads it.
  v1::RunSpec Logged(v1::RunSpec run) const {
    run.set_log_path(dir_.Path("result_1.txt"));
    return run;
  }

  absl::Status Train(const v1::RunSpec& run, bool is_resumed = false,
                     const Diagnosis& diagnosis = {}) {
    absl::StatusOr<TrainerSpec> spec = MakeTrainerSpec(run);
    if (!spec.ok()) return spec.status();
    spec->is_resumed = is_resumed;
    spec->diagnosis = diagnosis;
    TrainingLoop loop(*spec, &clock_, &stop_);
    return loop.Run();
  }

  std::string Log() const { return ReadFile(dir_.Path("result_1.txt")).value_or(""); }

  TempDir dir_;
  RealClock clock_;
  std::atomic<bool> stop_{false};
};

}  // namespace assay::testing

#endif  // TESTS_WORKER_TRAINER_LOOP_FIXTURE_H_
