#include "cli/admin/prune.h"

#include <grpcpp/client_context.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "cli/command/context.h"
#include "common/client/client.h"
#include "common/client/stubs.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_grpc.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr absl::Duration kPruneTimeout = absl::Hours(24);

struct Pruned {
  std::vector<Json> files;
  v1::PruneSummary summary;
};

absl::StatusOr<Pruned> Prune(Context* context, const client::Client& client, bool is_applied) {
  grpc::ClientContext call;
  PrepareCall(client.endpoint(), kPruneTimeout, &call);
  v1::PruneStoreRequest request;
  request.set_apply(is_applied);
  const auto reader = client.stubs().admin->PruneStore(&call, request);
  ProgressLine progress(context);
  Pruned pruned;
  int64_t file_count = 0;
  bool is_complete = false;
  v1::PruneStoreResponse response;
  while (reader->Read(&response)) {
    if (response.has_summary()) {
      pruned.summary = response.summary();
      is_complete = true;
      continue;
    }
    const v1::PrunedFiles& files = response.files();
    file_count += files.file_count();
    progress.Draw(absl::StrCat(file_count, is_applied ? " files removed" : " files found"));
    pruned.files.push_back(
        {{"entry", std::string(absl::StripPrefix(files.submission(), "submissions/"))},
         {"kind", files.kind()},
         {"file_count", files.file_count()},
         {"bytes", files.bytes()}});
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok()) return client.Explain(FromGrpc(status));
  if (!is_complete)
    return absl::UnavailableError("it did not end; what it told is done: run again");
  return pruned;
}

absl::StatusOr<ExitStatus> RunPrune(Context* context, const Arguments& arguments) {
  const bool is_applied = arguments.Has("apply");
  if (is_applied && arguments.Has("dry-run"))
    return absl::InvalidArgumentError("--apply and --dry-run exclude each other: give one of them");
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(Pruned pruned, Prune(context, *client, is_applied));
  const v1::PruneSummary& summary = pruned.summary;
  ListView view{.schema = "assay.pruned/v1",
                .items = std::move(pruned.files),
                .columns = {{"ENTRY", "entry"},
                            {"KIND", "kind"},
                            {"FILES", "file_count"},
                            {"SIZE", "bytes", Format::kBytes}},
                .empty_text = "nothing is old enough to go",
                .more = {{"is_applied", is_applied},
                         {"file_count", summary.file_count()},
                         {"bytes", summary.bytes()}}};
  RETURN_IF_ERROR(context->printer().List(view));
  if (summary.file_count() == 0) return ExitStatus::kDone;
  const std::string what = absl::StrCat(summary.file_count(), " files with ",
                                        FormatBytes(static_cast<double>(summary.bytes())));
  context->Note(is_applied ? absl::StrCat("removed ", what)
                           : absl::StrCat("would remove ", what,
                                          "; nothing is removed without "
                                          "--apply"));
  return ExitStatus::kDone;
}

}  // namespace

std::vector<Command> StorePruneCommands() {
  return {
      {.path = "admin prune",
       .summary = "remove what the coordinator's configuration lets go, by age",
       .description =
           "Telemetry and progress of entries that ended longer ago than retention.telemetry_days "
           "and retention.progress_days of assayd's configuration; 0 days, the default, keeps them "
           "for ever. Logs, what witnesses saw, the log of events, the audit and findings are "
           "never "
           "removed. Without --apply it only tells what would go. What is removed is in the audit, "
           "by entry; names, sizes and digests stay with the runs, and backups that have the files "
           "keep them.",
       .options = {{.name = "apply", .help = "remove it"},
                   {.name = "dry-run", .help = "remove nothing, as without --apply"}},
       .examples = {{"assay admin prune", "what would go"},
                    {"assay admin prune --apply", ""},
                    {"assay admin prune --json", ""}},
       .run = RunPrune}};
}

}  // namespace assay::cli
