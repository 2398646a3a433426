// Aligned columns for a terminal of a given width.

#ifndef CLI_TERMINAL_TABLE_H_
#define CLI_TERMINAL_TABLE_H_

#include <string>
#include <vector>

#include "cli/terminal/print.h"

namespace assay::cli {

// Cells as text already, column by column described.
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
  bool has_header = true;
};

// The width of each column; 0: it is left out. Columns without any value are left out, and where
// `available` does not suffice: long texts are cut to a readable length, then columns go, the least
// important first, then texts are cut further. Without `is_cut` everything stays as it is.
std::vector<int> FitWidths(const Table& table, int available, bool is_cut);

// The table as lines, each with its line end and without trailing blanks.
std::string RenderTable(const Table& table, const std::vector<int>& widths, const Style& style,
                        absl::string_view indent);

}  // namespace assay::cli

#endif  // CLI_TERMINAL_TABLE_H_
