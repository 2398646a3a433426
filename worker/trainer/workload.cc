#include "worker/trainer/workload.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "worker/trainer/cosmoflow_workload.h"
#include "worker/trainer/deepcam_workload.h"

namespace assay {
namespace {

constexpr WorkloadEntry kWorkloads[] = {
    {"cosmoflow", FillCosmoflow, MakeCosmoflowWorkload},
    {"deepcam", FillDeepcam, MakeDeepcamWorkload},
};

}  // namespace

absl::StatusOr<const WorkloadEntry*> FindWorkload(absl::string_view benchmark) {
  for (const WorkloadEntry& entry : kWorkloads)
    if (entry.benchmark == benchmark) return &entry;
  const std::string names = absl::StrJoin(
      kWorkloads, ", ",
      [](std::string* out, const WorkloadEntry& entry) { absl::StrAppend(out, entry.benchmark); });
  return InvalidField("benchmark",
                      absl::StrCat("want one of ", names, ", found \"", benchmark, "\""));
}

bool IsClosedMlperf(const v1::RunSpec& run) {
  return run.division() == "closed" && absl::StartsWith(run.round(), "hpc-");
}

}  // namespace assay
