// Hyperparameter borrowing: during review a submitter may once replace the hyperparameters of an
// entry by another submitter's, as a group; only batch sizes may be its own, and nothing else of
// the entry changes. (Training rules, Hyperparameter Borrowing; rules specification, section 6.5.)

#ifndef COMMON_RULES_BORROWING_H_
#define COMMON_RULES_BORROWING_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/json_value.h"
#include "common/rules/finding.h"
#include "common/rules/hyperparameters.h"
#include "common/rules/text_rule.h"

namespace assay::rules {

// What must stay as it was. What the original entry does not say (published history need not) is
// not compared.
struct BorrowingConfiguration {
  std::string system, dataset;
  int32_t nodes = 0;  // 0: not said
  int32_t ranks_per_node = 0;
  std::string backend, staging;
  std::map<std::string, std::string> labels;  // that its workers must have
  std::map<std::string, std::string>
      program;  // of one's own, by key of [workload]; files by digest
};

// What borrowing looks at in an entry.
struct BorrowingEntry {
  std::string organization, round, benchmark, division;
  BorrowingConfiguration configuration;
  Hyperparameters values;
  bool is_borrowed = false;  // its own hyperparameters are borrowed
  std::string replaced_by;   // the entry that borrows in its place already, as e-9; empty: none
  bool is_withdrawn = false;
};

// The rules, by id, for those who explain them.
std::span<const TextRule> BorrowingRules();

// Batch sizes: global_batch_size, local_batch_size, local_eval_batch_size, batchnorm_group_size.
bool IsBatchSize(absl::string_view key);

// The lender's values as a group, with the batch sizes of the borrower's own entry.
Hyperparameters BorrowValues(const Hyperparameters& own, const Hyperparameters& lender);

// What is wrong with `proposed`, which is to replace `own` with hyperparameters of `lender`; each
// finding names the rule (R-BOR-001 to R-BOR-005), what was expected and what was found:
//   001 a value is neither the lender's nor a batch size;
//   002 something else than hyperparameters changed;
//   003 lender and borrower are of different benchmarks, divisions or rounds;
//   004 the lender is the borrower, or has withdrawn the entry;
//   005 the entry has borrowed before, is withdrawn, or borrows nothing (a warning).
// Keys are hyperparameters, members of a submission file, or own_entry and lender_entry.
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
