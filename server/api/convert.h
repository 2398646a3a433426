// From core's values to messages of the API and back: with convert_worker.h, the only place that
// knows both.
//
// Functions that read messages check form (names, required fields), not meaning, and rely on
// limits.h for how large anything is; their errors are INVALID_ARGUMENT and say which field, what
// it holds and what it should look like.

#ifndef SERVER_API_CONVERT_H_
#define SERVER_API_CONVERT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

#include "assay/v1/admin_service.pb.h"
#include "assay/v1/history_service.pb.h"
#include "assay/v1/resources.pb.h"
#include "assay/v1/submission_service.pb.h"

#include "server/core/command.h"
#include "server/core/query.h"
#include "server/core/types.h"
#include "server/runtime/rule_book.h"

namespace assay::api {

// -------------------------------------------------------------------------------------- to
// messages

// Zero means "not yet": an unset message.
void SetTime(int64_t us, google::protobuf::Timestamp* time);

v1::TrainerWorkload ToProto(const core::TrainerWorkload& trainer);
v1::SubmissionSpec ToProto(const core::SubmissionSpec& spec);
v1::Submission ToProto(const core::Submission& submission);
v1::Run ToProto(const core::Run& run);
v1::RunEvent ToProto(const core::RunEvent& event, core::RunId run);
v1::ArtifactRef ToProto(const core::ArtifactRef& artifact);
v1::Dataset ToProto(const core::Dataset& dataset);
v1::View ToProto(const core::View& view);
v1::Token ToProto(const core::Token& token);
v1::Event ToProto(const core::EventRow& row);
v1::AuditEntry ToAuditEntry(const core::AuditRow& row);
v1::Round ToProto(const runtime::RoundInfo& round);
v1::ExplainSubmissionResponse ToProto(const core::Explanation& explanation);
// What VerifyStore tells: a fault, and at the end what was looked at.
v1::VerifyStoreResponse ToProto(const core::StoredFault& fault);
void ToProto(const core::StoredFault& fault, v1::StoreFault* message);
v1::VerifyStoreResponse ToProto(const core::VerifyCounts& counts, int64_t fault_count);
v1::StoreBackup ToProto(const core::BackupCounts& counts, int64_t fault_count);
v1::StoreUsage ToProto(const core::StoreUsage& usage);

// ------------------------------------------------------------------------------------ from
// messages

absl::StatusOr<core::SubmissionSpec> FromProto(const v1::SubmissionSpec& spec);
core::ArtifactRef FromProto(const v1::ArtifactRef& artifact);
absl::StatusOr<core::Dataset> FromProto(const v1::Dataset& dataset);
// Without author and time, which the coordinator fills in.
core::View FromProto(const v1::View& view);

// OK if `request_id` is there and of printable characters.
absl::Status CheckRequestId(absl::string_view request_id);

}  // namespace assay::api

#endif  // SERVER_API_CONVERT_H_
