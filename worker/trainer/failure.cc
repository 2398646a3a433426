#include "worker/trainer/failure.h"

#include <optional>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace assay {
namespace {

constexpr char kPayload[] = "assay/exit_code";

}  // namespace

absl::Status WithExitCode(absl::Status status, ExitCode code) {
  if (absl::IsUnauthenticated(status)) code = ExitCode::kIntruder;
  if (!status.ok() && !status.GetPayload(kPayload).has_value())
    status.SetPayload(kPayload, absl::Cord(absl::StrCat(static_cast<int>(code))));
  return status;
}

ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return ExitCode::kOk;
  const auto payload = status.GetPayload(kPayload);
  int code = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &code))
    return ExitCode::kInternal;
  return static_cast<ExitCode>(code);
}

}  // namespace assay
