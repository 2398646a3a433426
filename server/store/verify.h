// Looks at everything that is kept: every page of the database, the write-ahead log, the chain of
// events with the lines of runs, the high-water mark, every artifact, and whether the scores follow
// from them.

#ifndef SERVER_STORE_VERIFY_H_
#define SERVER_STORE_VERIFY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "server/core/query.h"
#include "server/store/mark.h"

namespace assay::store {

// A verification that is done in steps, so that it can be shown while it goes on and be given up at
// any of them. It only reads, needs no lock, and works beside a daemon that writes. Not
// thread-safe, but may move between threads.
class Verification {
 public:
  virtual ~Verification() = default;

  // Does a part of the work, some MiB, and returns the faults that it has found. What cannot be
  // read is a fault too. PRAGMA integrity_check is one step, whatever the size of the database.
  virtual std::vector<core::StoredFault> Step() = 0;
  virtual bool is_done() const = 0;

  // So far.
  virtual const core::VerifyCounts& counts() const = 0;
};

// Computes again what was concluded of the artifacts, by rules that the store does not know. Not
// thread-safe, but may move between threads.
class VerdictCheck {
 public:
  virtual ~VerdictCheck() = default;

  // Does a part of the work, a run or a submission, of what `database`, the path of one that is
  // whole, says of the artifacts below `artifacts`. False at the end; an error is the end, too.
  virtual absl::StatusOr<bool> Step(const std::string& database, const std::string& artifacts,
                                    core::VerifyCounts* counts,
                                    std::vector<core::StoredFault>* faults) = 0;
};

// What a Verifier looks at, in place of a data directory: one database and what it names.
struct VerifiedCopy {
  std::string directory;      // with the folder artifacts/
  std::string database_name;  // of the file in it
  Mark mark;                  // that the events have to agree with
  std::string mark_name;      // of the file that says so
};

class Verifier final : public Verification {
 public:
  // Without `verdicts` nothing is computed again.
  explicit Verifier(const std::string& data_directory,
                    std::unique_ptr<VerdictCheck> verdicts = nullptr);
  explicit Verifier(VerifiedCopy copy, std::unique_ptr<VerdictCheck> verdicts = nullptr);
  ~Verifier() override;
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;

  std::vector<core::StoredFault> Step() override;
  bool is_done() const override;
  const core::VerifyCounts& counts() const override;

 private:
  struct Work;
  const std::unique_ptr<Work> work_;
};

// All steps at once.
core::VerifyCounts RunToEnd(Verification* verification,
                            absl::FunctionRef<void(const core::StoredFault&)> found);
core::VerifyCounts Verify(const std::string& data_directory,
                          absl::FunctionRef<void(const core::StoredFault&)> found,
                          std::unique_ptr<VerdictCheck> verdicts = nullptr);

}  // namespace assay::store

#endif  // SERVER_STORE_VERIFY_H_
