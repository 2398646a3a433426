// Looks at backups (backup_directory.h), and makes data directories of them.

#ifndef SERVER_STORE_BACKUP_RESTORE_H_
#define SERVER_STORE_BACKUP_RESTORE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "server/core/query.h"
#include "server/store/backup_directory.h"
#include "server/store/verify.h"

namespace assay::store {

// The whole of a backup: backup.json, the digests of database and secret, and of the database all
// that a Verifier looks at, with every artifact. Nobody can write a backup meanwhile.
class BackupVerifier final : public Verification {
 public:
  explicit BackupVerifier(std::string directory, std::unique_ptr<VerdictCheck> verdicts = nullptr)
      : directory_(std::move(directory)), verdicts_(std::move(verdicts)) {}

  // Its first step also reads the whole database.
  std::vector<core::StoredFault> Step() override;
  bool is_done() const override { return is_done_; }
  const core::VerifyCounts& counts() const override;

 private:
  std::vector<core::StoredFault> Begin();

  const std::string directory_;
  std::unique_ptr<VerdictCheck> verdicts_;  // until there is a verifier
  UniqueFd lock_;
  std::unique_ptr<Verifier> verifier_;  // once backup.json was read
  bool is_done_ = false;
};

// Makes a data directory of the backup in `backup`: `directory` has to be empty, or not to exist
// beside others that do. The database is compared with its digest, and so is each artifact; those
// that are damaged or missing are told to `found` and left out. `progress` is told of each
// artifact. FAILED_PRECONDITION if the directory is not empty; NOT_FOUND if there is no backup;
// DATA_LOSS if its database or its secret is damaged, of which `found` was told. After an error, or
// a kill, the directory holds nothing that a daemon would start with.
absl::StatusOr<core::BackupCounts> RestoreBackup(
    const std::string& backup, const std::string& directory,
    absl::FunctionRef<void(const core::StoredFault&)> found,
    absl::FunctionRef<void(const core::BackupCounts&)> progress);

}  // namespace assay::store

#endif  // SERVER_STORE_BACKUP_RESTORE_H_
