// assay run ledger: every attempt of an entry.

#ifndef CLI_RUN_RUN_LEDGER_H_
#define CLI_RUN_RUN_LEDGER_H_

#include "cli/command/command.h"

namespace assay::cli {

Command RunLedgerCommand();

}  // namespace assay::cli

#endif  // CLI_RUN_RUN_LEDGER_H_
