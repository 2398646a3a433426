// The conversions of submissions that convert.h declares.

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/status.h"
#include "server/api/convert.h"
#include "server/api/names.h"
#include "server/api/proto_archive.h"
#include "server/core/description.h"

namespace assay::api {
namespace {

// An entry must be named where hyperparameters are borrowed.
absl::Status CheckNamed(core::SubmissionId id, absl::string_view field) {
  if (!id.is_none()) return absl::OkStatus();
  return Annotate(ParseSubmissionName("").status(), absl::StrCat("spec.borrowing.", field));
}

}  // namespace

v1::TrainerWorkload ToProto(const core::TrainerWorkload& trainer) {
  return Described<v1::TrainerWorkload>(trainer);
}

v1::SubmissionSpec ToProto(const core::SubmissionSpec& spec) {
  return Described<v1::SubmissionSpec>(spec);
}

v1::Submission ToProto(const core::Submission& submission) {
  v1::Submission message = Described<v1::Submission>(submission);
  // Where there is no verdict, nothing but the reason is said.
  if (!message.reference().error().empty()) message.mutable_reference()->clear_normalization();
  if (message.has_throughput()) {
    v1::Throughput* const throughput = message.mutable_throughput();
    throughput->set_models_per_minute(throughput->model_count() /
                                      throughput->time_to_all_minutes());
  }
  return message;
}

absl::StatusOr<core::SubmissionSpec> FromProto(const v1::SubmissionSpec& spec) {
  // A newer client's workload must not be taken for none.
  if (!spec.GetReflection()->GetUnknownFields(spec).empty())
    return absl::InvalidArgumentError(
        "spec has fields that this coordinator does not know: use an `assay` of its version");
  ASSIGN_OR_RETURN(core::SubmissionSpec value, ReadDescribed<core::SubmissionSpec>(spec, "spec"));
  value.dataset = std::string(absl::StripPrefix(value.dataset, "datasets/"));
  if (spec.workload_case() == v1::SubmissionSpec::WORKLOAD_NOT_SET)
    value.workload = core::TrainerWorkload{.backend = spec.backend()};
  if (value.borrowing.has_value()) {
    RETURN_IF_ERROR(CheckNamed(value.borrowing->own, "own_entry"));
    RETURN_IF_ERROR(CheckNamed(value.borrowing->lender, "lender_entry"));
  }
  return value;
}

}  // namespace assay::api
