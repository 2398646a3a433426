#include "server/offline_verify.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"

#include "assay/v1/admin_service.pb.h"

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"
#include "server/api/convert.h"
#include "server/store/data_directory.h"
#include "server/store/verify.h"

namespace assay {
namespace {

void PrintJson(const v1::VerifyStoreResponse& response, std::ostream& out) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  CHECK(google::protobuf::util::MessageToJsonString(response, &json, options).ok());
  out << json << std::endl;
}

void PrintFault(const core::StoredFault& fault, bool is_json, std::ostream& out) {
  if (!is_json) {
    out << fault.file << ": " << fault.object << ": " << fault.problem << std::endl;
    return;
  }
  PrintJson(api::ToProto(fault), out);
}

void PrintSummary(const core::VerifyCounts& counts, int64_t fault_count, bool is_json,
                  std::ostream& out) {
  if (!is_json) {
    out << "looked at " << counts.page_count << " pages, " << counts.frame_count
        << " frames of the log, " << counts.event_count << " events, " << counts.line_count
        << " lines of runs and " << counts.artifact_count << " artifacts: " << fault_count
        << " faults" << std::endl;
    return;
  }
  PrintJson(api::ToProto(counts, fault_count), out);
}

}  // namespace

absl::StatusOr<int64_t> VerifyOffline(const v1::ServerConfig& config, bool is_json,
                                      std::ostream& out) {
  const std::string& path = config.data_directory();
  if (!FileExists(path)) return absl::NotFoundError(absl::StrCat("there is no ", path));
  const absl::StatusOr<store::DataDirectory> held = store::DataDirectory::Open(path);
  if (!held.ok()) return Annotate(held.status(), "while it runs, use assay admin verify");
  int64_t fault_count = 0;
  const core::VerifyCounts counts = store::Verify(path, [&](const core::StoredFault& fault) {
    ++fault_count;
    PrintFault(fault, is_json, out);
  });
  PrintSummary(counts, fault_count, is_json, out);
  return fault_count;
}

}  // namespace assay
