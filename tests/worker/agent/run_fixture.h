// A dataset, a trainer and a data directory for tests of steps and agents.

#ifndef TESTS_WORKER_AGENT_RUN_FIXTURE_H_
#define TESTS_WORKER_AGENT_RUN_FIXTURE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "assay/v1/config.pb.h"
#include "assay/v1/run_spec.pb.h"

#include "common/file.h"
#include "common/log.h"
#include "tests/support/temp_dir.h"
#include "worker/agent/machine.h"

namespace assay::agent {

inline constexpr absl::Duration kPatience = absl::Seconds(60);

struct RunFixture {
  RunFixture() {
    for (const char* split : {"dataset/train", "dataset/validation", "stage", "data"})
      CHECK_OK(MakeDirectories(dir.Path(split)));
    CHECK_OK(WriteFileAtomic(dir.Path("dataset/train/a.bin"), "train"));
    CHECK_OK(WriteFileAtomic(dir.Path("dataset/validation/a.bin"), "validation"));
    worker.set_name("w0");
    worker.set_data_directory(dir.Path("data"));
    worker.set_stage_directory(dir.Path("stage"));
    worker.set_trainer_program(dir.Path("trainer.sh"));
    worker.set_core_count(4);
    worker.set_run_user("root");  // other accounts reach no temporary directory
    spec.set_run(key.run);
    spec.set_generation(key.generation);
    spec.set_run_number(3);
    spec.set_round("hpc-3.0.0");
    spec.set_node_count(1);
    spec.set_ranks_per_node(1);
    spec.mutable_trainer();
    spec.mutable_dataset()->set_path(dir.Path("dataset"));
    Trainer("exit 0");
  }

  // The trainer: a shell script with SPEC, LOG, STAGE (paths), RANK (local) and DATA (the dataset)
  // set.
  void Trainer(absl::string_view script) const {
    CHECK_OK(WriteFileAtomic(
        dir.Path("trainer.sh"),
        absl::StrCat("#!/bin/sh\n"
                     "field() { sed -n \"s/^$1: *\\\"\\{0,1\\}\\([^\\\"]*\\)\\\"\\{0,1\\}$/\\1/p\" "
                     "\"$SPEC\"; }\n"
                     "SPEC=$1\nLOG=$(field log_path)\nSTAGE=$(field stage_directory)\n"
                     "RANK=$(field local_rank)\nDATA=",
                     dir.Path("dataset"), "\n", script, "\n"),
        0755));
  }

  const testing::TempDir dir;
  const RunKey key{"runs/r-1", 1};
  v1::WorkerConfig worker;
  v1::RunSpec spec;
};

}  // namespace assay::agent

#endif  // TESTS_WORKER_AGENT_RUN_FIXTURE_H_
