// The history as a SQLite database for analysts: what a caller may see of it, as QueryResults tells
// it, page by page.

#ifndef CLI_HISTORY_HISTORY_DATABASE_H_
#define CLI_HISTORY_HISTORY_DATABASE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/client/client.h"
#include "common/database/database_file.h"
#include "common/history_fields.h"

namespace assay::cli {

inline constexpr char kHistoryDatabaseSchema[] = "assay.history_database/v1";

struct HistoryExport {
  // Of this kind alone. None: entries, with the runs, findings and hyperparameters of each; and
  // workers, unless there is a filter.
  std::optional<HistoryKind> kind;
  std::string filter;  // of `kind`, or of entries; empty: all
};

// How many rows of a table there are, by its name, in the order in which they were written.
using TableCounts = std::vector<std::pair<std::string, int64_t>>;

// Is told the table, its rows so far and how many it will have. Its error ends the export.
using ExportProgress =
    absl::FunctionRef<absl::Status(absl::string_view table, int64_t done, int64_t total)>;

// Writes the tables, their indices, and `columns`, which tells what each column means and its unit.
// A runs' or finding's entry is always there, also while more come in. Columns that name people or
// nodes have values in rows of the caller's own organisation only. Blocks, and fails as
// Client::Call and DatabaseFile do; a role that may not list workers gets none.
absl::StatusOr<TableCounts> WriteHistoryTables(const client::Client& client,
                                               const HistoryExport& what, ExportProgress progress,
                                               DatabaseFile* file);

// Writes `meta`: whose view of what this is.
absl::Status WriteHistoryMeta(const std::vector<std::pair<std::string, std::string>>& values,
                              DatabaseFile* file);

}  // namespace assay::cli

#endif  // CLI_HISTORY_HISTORY_DATABASE_H_
