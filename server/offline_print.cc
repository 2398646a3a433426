#include "server/offline_print.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"

#include "assay/v1/admin_service.pb.h"

#include "common/log.h"
#include "common/printable.h"
#include "server/api/convert.h"

namespace assay {
namespace {

void PrintJson(const google::protobuf::Message& message, std::ostream& out) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  CHECK(google::protobuf::util::MessageToJsonString(message, &json, options).ok());
  out << json << std::endl;
}

void PrintSummary(const core::BackupCounts& counts, int64_t fault_count, std::ostream& out) {
  v1::BackUpStoreResponse response;
  *response.mutable_summary() = api::ToProto(counts, fault_count);
  PrintJson(response, out);
}

}  // namespace

void DrawProgress(int64_t done_count, int64_t artifact_count, const OfflineOutput& output) {
  constexpr int64_t kLinesMax = 100;
  const bool is_last = done_count == artifact_count;
  if (output.terminal == nullptr || artifact_count == 0) return;
  if (!is_last && done_count % (artifact_count / kLinesMax + 1) != 0) return;
  *output.terminal << "\r" << done_count << " of " << artifact_count << " artifacts"
                   << (is_last ? "\n" : "") << std::flush;
}

void PrintFault(const core::StoredFault& fault, const OfflineOutput& output) {
  if (output.is_json) return PrintJson(api::ToProto(fault), *output.out);
  // Names of files of runs are what submitters chose.
  *output.out << Printable(absl::StrCat(fault.file, ": ", fault.object, ": ", fault.problem))
              << std::endl;
}

void PrintVerified(const core::VerifyCounts& counts, int64_t fault_count,
                   const OfflineOutput& output) {
  if (output.is_json) return PrintJson(api::ToProto(counts, fault_count), *output.out);
  *output.out << "looked at " << counts.page_count << " pages, " << counts.frame_count
              << " frames of the log, " << counts.event_count << " events, " << counts.line_count
              << " lines of runs and " << counts.artifact_count << " artifacts, computed "
              << counts.score_count << " scores again";
  if (counts.uncomputed_score_count > 0)
    *output.out << " (" << counts.uncomputed_score_count
                << " more cannot be: their rules are not here)";
  *output.out << ": " << fault_count << " faults" << std::endl;
}

void PrintBackedUp(const core::BackupCounts& counts, int64_t fault_count,
                   const OfflineOutput& output) {
  if (output.is_json) return PrintSummary(counts, fault_count, *output.out);
  *output.out << "backed up events 1 to " << counts.event_seq << ": " << counts.page_count
              << " pages of the database, " << counts.artifact_count << " artifacts ("
              << counts.linked_artifact_count << " linked, " << counts.copied_artifact_count
              << " copied, " << counts.kept_artifact_count << " there before), " << fault_count
              << " faults" << std::endl;
}

void PrintRestored(const core::BackupCounts& counts, int64_t fault_count,
                   const OfflineOutput& output) {
  if (output.is_json) return PrintSummary(counts, fault_count, *output.out);
  *output.out << "restored events 1 to " << counts.event_seq << ": " << counts.page_count
              << " pages of the database, " << counts.copied_artifact_count << " of "
              << counts.artifact_count << " artifacts, " << fault_count << " faults" << std::endl;
}

}  // namespace assay
