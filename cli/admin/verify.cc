#include "cli/admin/verify.h"

#include <grpcpp/client_context.h>

#include <string>

#include "absl/strings/str_cat.h"

#include "cli/admin/store_fault.h"
#include "cli/command/context.h"
#include "common/client/client.h"
#include "common/client/stubs.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_grpc.h"
#include "common/status.h"

namespace assay::cli {
namespace {

// Of some hundred GB of artifacts.
constexpr absl::Duration kVerifyTimeout = absl::Hours(24);
struct Report {
  std::vector<Json> faults;
  v1::VerifySummary summary;
};

absl::StatusOr<Report> Verify(const client::Client& client, const std::string& backup) {
  grpc::ClientContext context;
  PrepareCall(client.endpoint(), kVerifyTimeout, &context);
  v1::VerifyStoreRequest request;
  request.set_backup_directory(backup);
  const auto reader = client.stubs().admin->VerifyStore(&context, request);
  Report report;
  bool is_complete = false;
  v1::VerifyStoreResponse response;
  while (reader->Read(&response)) {
    if (response.has_summary()) {
      report.summary = response.summary();
      is_complete = true;
    } else if (report.faults.size() < kFaultsMax) {
      report.faults.push_back(FaultJson(response.fault()));
    }
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok()) return client.Explain(FromGrpc(status));
  if (!is_complete) return absl::UnavailableError("the verification did not end; run it again");
  return report;
}

std::string Uncomputed(const v1::VerifySummary& summary) {
  if (summary.uncomputed_score_count() == 0) return "";
  return absl::StrCat(" (", summary.uncomputed_score_count(),
                      " more cannot be: their rules are not here)");
}

absl::StatusOr<ExitStatus> RunStoreVerify(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(Report report, Verify(*client, arguments.Get("backup")));
  const v1::VerifySummary& summary = report.summary;
  ListView view{.schema = "assay.fault/v1",
                .items = std::move(report.faults),
                .columns = FaultColumns(),
                .empty_text = "everything is as it was written"};
  RETURN_IF_ERROR(context->printer().List(view));
  context->Note(absl::StrCat("looked at ", summary.page_count(), " pages, ", summary.frame_count(),
                             " frames of the log, ", summary.event_count(), " events, ",
                             summary.line_count(), " lines of runs and ", summary.artifact_count(),
                             " artifacts, computed ", summary.score_count(), " scores again",
                             Uncomputed(summary), ": ", summary.fault_count(), " faults"));
  return summary.fault_count() == 0 ? ExitStatus::kDone : ExitStatus::kFailed;
}

}  // namespace

std::vector<Command> VerifyCommands() {
  return {
      {.path = "admin verify",
       .summary = "look for damage in everything that the coordinator keeps",
       .description =
           "Reads every page of the database, the write-ahead log, the chain of events with the "
           "lines of runs, the high-water mark and every artifact, judges every log and scores "
           "every entry again by the rules that accepted it, beside the work that goes on. It "
           "names file and object of each fault: a score that does not follow from its logs by "
           "submission and run. Ends with a status other than 0 if there "
           "is one. Where the coordinator does not start: assayd --config=FILE --verify. With "
           "--backup the same of a backup on the coordinator's host, and the digests of its files; "
           "without a coordinator: assayd --verify_backup=DIR.",
       .options = {{.name = "backup",
                    .kind = Option::Kind::kText,
                    .value = "DIR",
                    .help = "of what assay admin backup has put there, not of the coordinator"}},
       .examples = {{"assay admin verify", ""},
                    {"assay admin verify --json", ""},
                    {"assay admin verify --backup /srv/backup/assay", ""}},
       .run = RunStoreVerify}};
}

}  // namespace assay::cli
