#include "worker/trainer/workload.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/rules/trainer_settings.h"
#include "common/status.h"
#include "worker/trainer/cosmoflow_workload.h"
#include "worker/trainer/deepcam_workload.h"

namespace assay {
namespace {

struct Benchmark {
  absl::string_view name;
  absl::StatusOr<std::unique_ptr<const Workload>> (*make)(const Hyperparameters& parameters,
                                                          const TrainerSpec& spec);
};

constexpr Benchmark kBenchmarks[] = {
    {"cosmoflow", MakeCosmoflowWorkload},
    {"deepcam", MakeDeepcamWorkload},
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Workload>> MakeWorkload(const TrainerSpec& spec) {
  ASSIGN_OR_RETURN(const Hyperparameters parameters, Hyperparameters::Parse(spec.run));
  for (const Benchmark& benchmark : kBenchmarks)
    if (benchmark.name == spec.run.benchmark()) return benchmark.make(parameters, spec);
  const std::string names = absl::StrJoin(
      kBenchmarks, ", ",
      [](std::string* out, const Benchmark& known) { absl::StrAppend(out, known.name); });
  return InvalidField(
      "benchmark", absl::StrCat("want one of ", names, ", found \"", spec.run.benchmark(), "\""));
}

bool IsClosedMlperf(const v1::RunSpec& run) {
  return rules::IsClosedMlperf(run.division(), run.round());
}

}  // namespace assay
