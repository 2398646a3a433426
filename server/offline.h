// What assayd does with a data directory, or with a backup of one, instead of serving it: looks for
// damage, backs up, restores.

#ifndef SERVER_OFFLINE_H_
#define SERVER_OFFLINE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "assay/v1/config.pb.h"

#include "server/offline_print.h"

namespace assay {

// Each prints faults as they are found and a summary at the end, and returns how many faults there
// were.

// NOT_FOUND if there is no data directory; FAILED_PRECONDITION if a daemon runs on it: then use
// assay admin verify.
absl::StatusOr<int64_t> VerifyOffline(const v1::ServerConfig& config, const OfflineOutput& output);

// Of the backup in `backup`, whoever writes to its coordinator.
absl::StatusOr<int64_t> VerifyBackupOffline(const std::string& backup, const OfflineOutput& output);

// As VerifyOffline; errors of store::Backup.
absl::StatusOr<int64_t> BackUpOffline(const v1::ServerConfig& config, const std::string& backup,
                                      const OfflineOutput& output);

// Errors of store::RestoreBackup.
absl::StatusOr<int64_t> RestoreOffline(const std::string& backup, const std::string& directory,
                                       const OfflineOutput& output);

}  // namespace assay

#endif  // SERVER_OFFLINE_H_
