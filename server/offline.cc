#include "server/offline.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "common/file.h"
#include "common/status.h"
#include "server/api/services.h"
#include "server/runtime/score_check.h"
#include "server/store/backup.h"
#include "server/store/backup_restore.h"
#include "server/store/data_directory.h"
#include "server/store/verify.h"

namespace assay {
namespace {

// Held while this works, so that no daemon starts.
absl::StatusOr<store::DataDirectory> HoldData(const v1::ServerConfig& config,
                                              absl::string_view command) {
  const std::string& path = config.data_directory();
  if (!FileExists(path)) return absl::NotFoundError(absl::StrCat("there is no ", path));
  absl::StatusOr<store::DataDirectory> held = store::DataDirectory::Open(path);
  if (held.ok()) return held;
  return Annotate(held.status(), absl::StrCat("while it runs, use ", command));
}

// Prints faults, and counts them in `count`.
auto PrintTo(const OfflineOutput& output, int64_t* count) {
  return [&output, count](const core::StoredFault& fault) {
    ++*count;
    PrintFault(fault, output);
  };
}

}  // namespace

absl::StatusOr<int64_t> VerifyOffline(const v1::ServerConfig& config, const OfflineOutput& output) {
  ASSIGN_OR_RETURN(const store::DataDirectory held, HoldData(config, "assay admin verify"));
  int64_t fault_count = 0;
  const auto print = PrintTo(output, &fault_count);
  const core::VerifyCounts counts = store::Verify(held.path(), print, runtime::MakeScoreCheck());
  PrintVerified(counts, fault_count, output);
  return fault_count;
}

absl::StatusOr<int64_t> VerifyBackupOffline(const std::string& backup,
                                            const OfflineOutput& output) {
  int64_t fault_count = 0;
  const auto print = PrintTo(output, &fault_count);
  store::BackupVerifier verifier(backup, runtime::MakeScoreCheck());
  const core::VerifyCounts counts = store::RunToEnd(&verifier, print);
  PrintVerified(counts, fault_count, output);
  return fault_count;
}

absl::StatusOr<int64_t> BackUpOffline(const v1::ServerConfig& config, const std::string& backup,
                                      const OfflineOutput& output) {
  ASSIGN_OR_RETURN(const store::DataDirectory held, HoldData(config, "assay admin backup"));
  int64_t fault_count = 0;
  const auto print = PrintTo(output, &fault_count);
  store::Backup work({.data_directory = held.path(),
                      .directory = backup,
                      .version = std::string(api::kBackendVersion),
                      .now_us = absl::ToUnixMicros(absl::Now())});
  while (!work.is_done()) {
    ASSIGN_OR_RETURN(const std::vector<core::StoredFault> faults, work.Step());
    for (const core::StoredFault& fault : faults)
      print(fault);
  }
  PrintBackedUp(work.counts(), fault_count, output);
  return fault_count;
}

absl::StatusOr<int64_t> RestoreOffline(const std::string& backup, const std::string& directory,
                                       const OfflineOutput& output) {
  int64_t fault_count = 0;
  const auto print = PrintTo(output, &fault_count);
  ASSIGN_OR_RETURN(
      const core::BackupCounts counts,
      store::RestoreBackup(backup, directory, print, [&](const core::BackupCounts& so_far) {
        DrawProgress(so_far.copied_artifact_count + fault_count, so_far.artifact_count, output);
      }));
  PrintRestored(counts, fault_count, output);
  return fault_count;
}

}  // namespace assay
