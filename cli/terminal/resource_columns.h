// What tables show of the resources that common/client/resource_json.h makes.

#ifndef CLI_TERMINAL_RESOURCE_COLUMNS_H_
#define CLI_TERMINAL_RESOURCE_COLUMNS_H_

#include <vector>

#include "cli/terminal/print.h"

namespace assay::cli {

const std::vector<Column>& EntryColumns();
const std::vector<Column>& EntryFields();
const std::vector<Column>& RunColumns();
const std::vector<Column>& RunFields();
const std::vector<Column>& BorrowedColumns();  // of the entry's member borrowed_values
const std::vector<Column>& FindingColumns();
const std::vector<Column>& RunScoreColumns();  // of runs in a score

}  // namespace assay::cli

#endif  // CLI_TERMINAL_RESOURCE_COLUMNS_H_
