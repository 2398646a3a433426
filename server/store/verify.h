// Looks at everything that is kept: every page of the database, the write-ahead log, the chain of
// events with the lines of runs, the high-water mark, and every artifact.

#ifndef SERVER_STORE_VERIFY_H_
#define SERVER_STORE_VERIFY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"

#include "server/core/query.h"

namespace assay::store {

// A verification that is done in steps, so that it can be shown while it goes on and be given up at
// any of them. It only reads, needs no lock, and works beside a daemon that writes. Not
// thread-safe, but may move between threads.
class Verifier {
 public:
  explicit Verifier(const std::string& data_directory);
  ~Verifier();
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;

  // Does a part of the work, some MiB, and returns the faults that it has found. What cannot be
  // read is a fault too. PRAGMA integrity_check is one step, whatever the size of the database.
  std::vector<core::StoredFault> Step();
  bool is_done() const;

  // So far.
  const core::VerifyCounts& counts() const;

 private:
  struct Work;
  const std::unique_ptr<Work> work_;
};

// All steps at once.
core::VerifyCounts Verify(const std::string& data_directory,
                          absl::FunctionRef<void(const core::StoredFault&)> found);

}  // namespace assay::store

#endif  // SERVER_STORE_VERIFY_H_
