// Hyperparameter borrowing: during review a submitter may once replace the hyperparameters of an
// entry by another submitter's, as a group; only batch sizes may be its own, and nothing else of
// the entry changes. (Training rules, Hyperparameter Borrowing; rules specification, section 6.5.)

#ifndef COMMON_RULES_BORROWING_H_
#define COMMON_RULES_BORROWING_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/json_value.h"
#include "common/rules/finding.h"
#include "common/rules/hyperparameters.h"

namespace assay::rules {

// What borrowing looks at in an entry.
struct BorrowingEntry {
  std::string organization, round, benchmark, division;
  // What must stay as it was, by the name that a submission file gives it: system, nodes, ...
  std::vector<std::pair<std::string, std::string>> configuration;
  Hyperparameters values;
  bool is_borrowed = false;  // its own hyperparameters are borrowed
};

// Batch sizes: global_batch_size, local_batch_size, batchnorm_group_size.
bool IsBatchSize(absl::string_view key);

// The lender's values as a group, with the batch sizes of the borrower's own entry.
Hyperparameters BorrowValues(const Hyperparameters& own, const Hyperparameters& lender);

// What is wrong with `proposed`, which is to replace `own` with hyperparameters of `lender`; each
// finding names the rule (R-BOR-001 to R-BOR-005), what was expected and what was found:
//   001 a value is neither the lender's nor a batch size;
//   002 something else than hyperparameters changed;
//   003 lender and borrower are of different benchmarks, divisions or rounds;
//   004 the lender is the borrower;
//   005 the entry has borrowed before, or borrows nothing (a warning).
std::vector<Finding> CheckBorrowing(const BorrowingEntry& own, const BorrowingEntry& lender,
                                    const BorrowingEntry& proposed);

// One hyperparameter of the three.
struct BorrowedValue {
  std::string key;
  std::optional<JsonValue> own, lender, proposed;
  // "same" (nothing changed), "borrowed" (the lender's instead of its own), "batch size" (its own
  // choice), "refused" (neither).
  std::string standing;
};

// Every hyperparameter that any of them has, by key.
std::vector<BorrowedValue> CompareBorrowing(const Hyperparameters& own,
                                            const Hyperparameters& lender,
                                            const Hyperparameters& proposed);

}  // namespace assay::rules

#endif  // COMMON_RULES_BORROWING_H_
