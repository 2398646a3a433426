#include "cli/admin/backup.h"

#include <grpcpp/client_context.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "cli/admin/store_fault.h"
#include "cli/command/context.h"
#include "cli/command/share.h"
#include "common/client/client.h"
#include "common/client/stubs.h"
#include "common/process.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_grpc.h"
#include "common/status.h"

namespace assay::cli {
namespace {

// Of some hundred GB of artifacts.
constexpr absl::Duration kBackupTimeout = absl::Hours(24);
constexpr int64_t kPageBytes = 4096;  // of SQLite's pages, as the coordinator has them

// ------------------------------------------------------------------------------------- backup

int64_t PresentCount(const v1::StoreBackup& backup) {
  return backup.linked_artifact_count() + backup.copied_artifact_count() +
         backup.kept_artifact_count();
}

std::string ProgressText(const v1::StoreBackup& backup, bool is_utf8) {
  constexpr int kBarWidth = 30;
  if (backup.artifact_count() == 0) {
    return absl::StrCat(
        ProgressBar(backup.copied_page_count(), backup.page_count(), kBarWidth, is_utf8),
        " database, ", FormatBytes(static_cast<double>(backup.copied_page_count() * kPageBytes)),
        " of ", FormatBytes(static_cast<double>(backup.page_count() * kPageBytes)));
  }
  return absl::StrCat(
      ProgressBar(PresentCount(backup), backup.artifact_count(), kBarWidth, is_utf8), " ",
      PresentCount(backup), " of ", backup.artifact_count(), " artifacts");
}

Json BackupJson(const std::string& directory, const v1::StoreBackup& backup,
                std::vector<Json> faults) {
  return {{"directory", directory},
          {"event_seq", backup.event_seq()},
          {"database_bytes", backup.page_count() * kPageBytes},
          {"artifact_count", backup.artifact_count()},
          {"linked_artifact_count", backup.linked_artifact_count()},
          {"copied_artifact_count", backup.copied_artifact_count()},
          {"kept_artifact_count", backup.kept_artifact_count()},
          {"artifact_bytes", backup.artifact_bytes()},
          {"fault_count", backup.fault_count()},
          {"faults", std::move(faults)}};
}

struct Made {
  v1::StoreBackup backup;
  std::vector<Json> faults;
};

absl::StatusOr<Made> BackUp(Context* context, const client::Client& client,
                            const std::string& directory) {
  grpc::ClientContext call;
  PrepareCall(client.endpoint(), kBackupTimeout, &call);
  v1::BackUpStoreRequest request;
  request.set_directory(directory);
  const auto reader = client.stubs().admin->BackUpStore(&call, request);
  ProgressLine progress(context);
  Made made;
  bool is_complete = false;
  v1::BackUpStoreResponse response;
  while (reader->Read(&response)) {
    if (response.has_progress())
      progress.Draw(ProgressText(response.progress(), context->style().is_utf8()));
    if (response.has_fault() && made.faults.size() < kFaultsMax)
      made.faults.push_back(FaultJson(response.fault()));
    if (response.has_summary()) {
      made.backup = response.summary();
      is_complete = true;
    }
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok()) return client.Explain(FromGrpc(status));
  if (!is_complete) return absl::UnavailableError("the backup did not end; run it again");
  return made;
}

absl::StatusOr<ExitStatus> RunBackup(Context* context, const Arguments& arguments) {
  const std::string directory = arguments.Get("DIR");
  if (!absl::StartsWith(directory, "/")) {
    return absl::InvalidArgumentError(
        absl::StrCat("DIR is \"", directory,
                     "\": give an absolute path, it is a directory of the coordinator's host"));
  }
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(Made made, BackUp(context, *client, directory));
  RETURN_IF_ERROR(
      context->printer().Show({.schema = "assay.backup_made/v1",
                               .value = BackupJson(directory, made.backup, std::move(made.faults)),
                               .fields = {{"Directory", "directory"},
                                          {"Last event", "event_seq"},
                                          {"Database", "database_bytes", Format::kBytes},
                                          {"Artifacts", "artifact_count"},
                                          {"  linked", "linked_artifact_count"},
                                          {"  copied", "copied_artifact_count"},
                                          {"  there before", "kept_artifact_count"},
                                          {"  together", "artifact_bytes", Format::kBytes}},
                               .sections = {{"Not in the backup", "faults", FaultColumns()}}}));
  if (made.backup.fault_count() == 0) return ExitStatus::kDone;
  context->Warn(
      absl::StrCat(made.backup.fault_count(),
                   " artifacts are damaged or missing at the coordinator, and not in the backup"));
  return ExitStatus::kFailed;
}

// ------------------------------------------------------------------------------------ restore

// assayd does it: it alone reads and writes databases. It prints for itself.
absl::StatusOr<ExitStatus> RunRestore(Context* context, const Arguments& arguments) {
  using Output = PrintOptions::Output;
  const Output output = context->printer().options().output;
  if (output != Output::kTable && output != Output::kJson && output != Output::kPlain) {
    return absl::InvalidArgumentError(
        "restore prints text, or with --json an object a line; leave other formats out");
  }
  ASSIGN_OR_RETURN(const std::string program, SiblingProgram(context->env(), "assayd"));
  SpawnOptions spawn;
  spawn.argv = {program,
                absl::StrCat("--restore=", context->env().AbsolutePath(arguments.Get("BACKUP"))),
                absl::StrCat("--into=", context->env().AbsolutePath(arguments.Get("DIR")))};
  if (output == Output::kJson) spawn.argv.push_back("--json");
  spawn.process_group = getpgrp();  // Ctrl-C is for it, too
  ASSIGN_OR_RETURN(const ProcessId process, Spawn(spawn));
  ASSIGN_OR_RETURN(const int code, WaitForExit(process, absl::InfiniteDuration()));
  if (code == 0) {
    context->Note("next: start assayd on it, and look through it with assay admin verify");
    return ExitStatus::kDone;
  }
  constexpr int kUsageCode = 2;  // of assayd
  return code == kUsageCode ? ExitStatus::kUsage : ExitStatus::kFailed;
}

// -------------------------------------------------------------------------------------- usage

absl::StatusOr<ExitStatus> RunUsage(Context* context, const Arguments&) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::StoreUsage usage, client->Call(v1::GetUsageRequest()));
  ListView view{
      .schema = "assay.usage/v1",
      .columns = {{"KIND", "kind"}, {"FILES", "count"}, {"SIZE", "bytes", Format::kBytes}},
      .more = {{"bytes", usage.bytes()}, {"free_bytes", usage.free_bytes()}}};
  for (const v1::UsageOfKind& kind : usage.kinds()) {
    view.items.push_back({{"kind", kind.kind()}, {"count", kind.count()}, {"bytes", kind.bytes()}});
  }
  RETURN_IF_ERROR(context->printer().List(view));
  context->Note(absl::StrCat("together ", FormatBytes(static_cast<double>(usage.bytes())),
                             ", free ", FormatBytes(static_cast<double>(usage.free_bytes()))));
  return ExitStatus::kDone;
}

}  // namespace

std::vector<Command> BackupCommands() {
  return {
      {.path = "admin backup",
       .summary = "copy everything that the coordinator keeps, beside the work that goes on",
       .description =
           "Into a directory of the coordinator's host: database, artifacts and secret, as they "
           "are at one event. Artifacts are linked where the directory is on the same file system, "
           "else copied; those that an earlier backup has put there stay. The earlier backup is "
           "whole until the new one is. Ends with a status other than 0 if an artifact is damaged "
           "or missing. Where the coordinator does not run: assayd --config=FILE --backup=DIR.",
       .positionals = {{.name = "DIR",
                        .help = "absolute; empty, new, or an earlier backup of this coordinator",
                        .completes = Completes::kDirectory}},
       .examples = {{"assay admin backup /srv/backup/assay", ""},
                    {"assay admin backup /srv/backup/assay --json", ""}},
       .run = RunBackup},
      {.path = "admin restore",
       .summary = "make a data directory of a backup, without a coordinator",
       .description =
           "Compares the database and every artifact with their digests, names file and object of "
           "what is damaged, and overwrites nothing. A backup whose database is damaged is not "
           "restored; damaged artifacts are left out, and the status is then 1. Run it as the "
           "coordinator's account, on its host.",
       .positionals = {{.name = "BACKUP",
                        .help = "the directory of assay admin backup",
                        .completes = Completes::kDirectory},
                       {.name = "DIR",
                        .help = "the data directory to make: empty or new",
                        .completes = Completes::kDirectory}},
       .examples = {{"assay admin restore /srv/backup/assay /var/lib/assay", ""},
                    {"assay admin restore /srv/backup/assay /var/lib/assay --json",
                     "an object a line: faults, and a summary"}},
       .run = RunRestore},
      {.path = "admin usage",
       .summary = "what the coordinator keeps, by kind, and how much of the disk it takes",
       .description = "Artifacts are counted once, however many runs have them.",
       .examples = {{"assay admin usage", ""}, {"assay admin usage --json", ""}},
       .run = RunUsage}};
}

}  // namespace assay::cli
