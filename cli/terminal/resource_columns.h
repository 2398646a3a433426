// What tables show of the resources that common/client/resource_json.h makes.

#ifndef CLI_TERMINAL_RESOURCE_COLUMNS_H_
#define CLI_TERMINAL_RESOURCE_COLUMNS_H_

#include <string>
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

// People read of an entry's or a run's energy what `text` says; programs get the number.
void ShowEnergy(bool is_structured, const std::string& text, ShowView* view);

}  // namespace assay::cli

#endif  // CLI_TERMINAL_RESOURCE_COLUMNS_H_
