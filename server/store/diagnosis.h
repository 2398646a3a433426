// A quick look at the database itself, beside the work that goes on; Verifier (verify.h) looks at
// all.

#ifndef SERVER_STORE_DIAGNOSIS_H_
#define SERVER_STORE_DIAGNOSIS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "server/core/query.h"

namespace assay::store {

// Of the database in `data_directory`, whoever writes to it. With `is_checked` SQLite's quick_check
// is run, for `patience` at most. Damage is no error; errors of Db are.
absl::StatusOr<core::StoreDiagnosis> Diagnose(const std::string& data_directory, bool is_checked,
                                              absl::Duration patience = absl::Minutes(1));

}  // namespace assay::store

#endif  // SERVER_STORE_DIAGNOSIS_H_
