// Tables: rows of JSON with columns that say how they are shown, as HTML and as CSV.

#ifndef SERVER_WEB_TABLE_H_
#define SERVER_WEB_TABLE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/client/json.h"
#include "server/web/html.h"

namespace assay::web {

using client::Json;

enum class CellFormat {
  kText,
  kWords,    // elements of an array, or a text, that may wrap
  kCode,     // fixed width
  kInteger,  // 1,024
  kNumber,   // four significant digits
  kMinutes,  // two decimals
  kSeconds,  // three
  kBytes,    // "1.2 GB"
  kTime,     // "2026-11-23 10:00"
  kDigest,   // its first twelve digits
  kYesNo,
};

struct TableColumn {
  std::string title;   // with its unit
  std::string member;  // of a row, or of an object in it: "score_minutes", "profile.epoch"
  CellFormat format = CellFormat::kText;
  // What the cell links to, a path of the site; empty: nothing.
  std::function<std::string(const Json& row)> path = nullptr;
  // The cell, in place of the member's value.
  std::function<Html(const Json& row)> draw = nullptr;
};

struct Table {
  std::string caption;
  std::string empty = "Nothing.";  // what is said in place of no rows
  std::vector<TableColumn> columns;
  Json rows = Json::array();
  // The id of a row on the page; empty: none.
  std::function<std::string(const Json& row)> row_id = nullptr;
};

// The member of that path; null if there is none.
const Json& MemberAt(const Json& row, absl::string_view path);

// As people read it; "" for null.
std::string CellText(const Json& value, CellFormat format);

// In a region of its own, which scrolls where the window is narrow. The first column names the row.
Html TableHtml(const Table& table);

// RFC 4180, with the members' names in the first line, and numbers as they are. A cell that a
// spreadsheet would take for a formula begins with an apostrophe.
std::string TableCsv(const Table& table);

// Names with values, as a list of definitions; without those that are empty.
Html FactsHtml(const Json& value, const std::vector<TableColumn>& facts);

// 1234567 as "1,234,567".
std::string GroupDigits(int64_t value);

// "1.23 GB", with powers of 1000.
std::string BytesText(double bytes);

// "1 h 02 min", "34.4 min", "12.3 s".
std::string DurationText(double seconds);

}  // namespace assay::web

#endif  // SERVER_WEB_TABLE_H_
