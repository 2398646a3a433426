#include "server/api/names.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/status.h"

namespace assay::api {
namespace {

absl::StatusOr<absl::string_view> StripCollection(absl::string_view name,
                                                  absl::string_view collection,
                                                  absl::string_view example) {
  if (absl::ConsumePrefix(&name, collection)) return name;
  return absl::InvalidArgumentError(
      absl::StrCat("not a resource name: ", Shown(name), "; expected ", collection, example));
}

}  // namespace

std::string Shown(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, 80)), "\"");
}

absl::StatusOr<core::SubmissionId> ParseSubmissionName(absl::string_view name) {
  ASSIGN_OR_RETURN(const absl::string_view id, StripCollection(name, "submissions/", "e-42"));
  return core::ParseSubmissionId(id);
}

absl::StatusOr<core::RunId> ParseRunName(absl::string_view name) {
  ASSIGN_OR_RETURN(const absl::string_view id, StripCollection(name, "runs/", "r-901"));
  return core::ParseRunId(id);
}

absl::StatusOr<core::TokenId> ParseTokenName(absl::string_view name) {
  ASSIGN_OR_RETURN(const absl::string_view id, StripCollection(name, "tokens/", "t-7"));
  return core::ParseTokenId(id);
}

absl::StatusOr<core::AllocationId> ParseAllocationName(absl::string_view name) {
  ASSIGN_OR_RETURN(const absl::string_view id, StripCollection(name, "allocations/", "a-1"));
  return core::ParseAllocationId(id);
}

absl::StatusOr<std::string> ParseWorkerName(absl::string_view name) {
  ASSIGN_OR_RETURN(const absl::string_view id, StripCollection(name, "workers/", "w0"));
  RETURN_IF_ERROR(core::CheckName("worker", id));
  return std::string(id);
}

absl::StatusOr<std::string> ParseDatasetName(absl::string_view name) {
  ASSIGN_OR_RETURN(const absl::string_view id, StripCollection(name, "datasets/", "cosmo32"));
  RETURN_IF_ERROR(core::CheckName("dataset", id));
  return std::string(id);
}

std::string NameOf(core::SubmissionId id) {
  return id.is_none() ? "" : absl::StrCat("submissions/", id.ToString());
}
std::string NameOf(core::RunId id) {
  return id.is_none() ? "" : absl::StrCat("runs/", id.ToString());
}
std::string NameOf(core::TokenId id) {
  return id.is_none() ? "" : absl::StrCat("tokens/", id.ToString());
}
std::string NameOf(core::AllocationId id) {
  return id.is_none() ? "" : absl::StrCat("allocations/", id.ToString());
}
std::string WorkerName(absl::string_view worker) {
  return absl::StrCat("workers/", worker);
}
std::string DatasetName(absl::string_view dataset) {
  return absl::StrCat("datasets/", dataset);
}

}  // namespace assay::api
