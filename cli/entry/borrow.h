// assay entry borrow: an entry's hyperparameters replaced by another submitter's, as a group.

#ifndef CLI_ENTRY_BORROW_H_
#define CLI_ENTRY_BORROW_H_

#include <vector>

#include "assay/v1/resources.pb.h"

#include "cli/command/command.h"
#include "common/rules/borrowing.h"

namespace assay::cli {

// What the rules of borrowing look at in a spec.
rules::BorrowingEntry BorrowingEntryOf(const v1::SubmissionSpec& spec);

std::vector<Command> BorrowCommands();

}  // namespace assay::cli

#endif  // CLI_ENTRY_BORROW_H_
