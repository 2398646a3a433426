// What its submitter takes back: the command, and what the log of events says of it.

#ifndef SERVER_CORE_WITHDRAWAL_H_
#define SERVER_CORE_WITHDRAWAL_H_

#include <string>

#include "absl/strings/string_view.h"

#include "server/core/types.h"

namespace assay::core {

// Its submitter hands it in no more. One that goes on ends as by CancelSubmission; one that has
// ended keeps its state, runs and logs as evidence, and is never published. Reply: SubmissionReply;
// repeating it changes nothing. NOT_FOUND if there never was one; FAILED_PRECONDITION if it is
// imported, or published already (HPC rules, "Withdrawing": until the results are final).
struct WithdrawSubmission {
  SubmissionId submission;
  std::string reason;
};

// Its submitter hands it in no more: it is never published, and stays as evidence.
struct SubmissionWithdrawn {
  static constexpr absl::string_view kType = "SubmissionWithdrawn";
  static constexpr int kVersion = 1;
  SubmissionId submission;
  std::string reason;
  bool operator==(const SubmissionWithdrawn&) const = default;
};

// The submission after it.
void Withdraw(const SubmissionWithdrawn& event, int64_t at_us, Submission* submission);

}  // namespace assay::core

#endif  // SERVER_CORE_WITHDRAWAL_H_
