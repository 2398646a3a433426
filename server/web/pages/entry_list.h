// Lists of entries: found by a filter, as rows whose members are named as the history names them.

#ifndef SERVER_WEB_PAGES_ENTRY_LIST_H_
#define SERVER_WEB_PAGES_ENTRY_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "assay/v1/resources.pb.h"

#include "server/web/page.h"
#include "server/web/pages/parts.h"
#include "server/web/table.h"

namespace assay::web {

inline constexpr int64_t kRowsAtFirst = 200;

struct EntryQuestion {
  std::string filter;    // AIP-160; empty: all
  std::string order_by;  // "minutes", "minutes desc"; empty: newest first
  int64_t limit = kRowsAtFirst;
  std::string page_token;  // of the page before
};

struct EntryAnswer {
  Json rows = Json::array();
  int64_t total = 0;       // of all pages
  std::string filter;      // as it was understood
  std::string next_token;  // empty: this is the last page
  int64_t hidden = 0;      // left out because they lack what the filter compares
  std::string hidden_reason;
};

// What people see of an entry in a list: the members of its JSON, and `minutes`, `metric`, `batch`,
// `verified`, `unofficial_node_minutes` (minutes times nodes), `unofficial_accelerator_minutes`.
Json EntryRow(const v1::Submission& entry);

// Rows with the members of EntryRow that the history has. The coordinator's errors:
// INVALID_ARGUMENT with position, reason and choices for a filter that is none, RESOURCE_EXHAUSTED
// with advice for a question that takes too long. Blocks.
absl::StatusOr<EntryAnswer> FindEntries(const Context& context, const EntryQuestion& question);

// How many entries have which values of `fields`: a row for each combination, with `count`. At most
// 1000 of them. The same errors. Blocks.
absl::StatusOr<Json> CountEntries(const Context& context, const std::string& filter,
                                  const std::vector<std::string>& fields);

// `FIELD="value"` as a filter has it; a number without quotation marks.
std::string Equals(absl::string_view field, const Json& value);

// All columns that lists of entries can have; `name` is what the URL says.
struct EntryListColumn {
  std::string name;
  TableColumn column;
  bool is_usual = false;
};
const std::vector<EntryListColumn>& EntryColumns();

// The columns that the request asks for (columns=minutes&columns=nodes), or the usual ones.
std::vector<TableColumn> ChosenColumns(const Request& request);

// A form with which people choose filter, order and columns by a GET request. `hidden`: names of
// parameters that stay as they are.
Html EntryListForm(const Request& request, const std::vector<std::string>& hidden);

// How many rows fit, what is hidden and why, and the filter as it was understood. `fit`: between
// the number and the filter.
Html AnswerNote(const EntryAnswer& answer, Markup fit = " fit ");

// Links to the first and the next page of an answer; nothing if there is but one.
Html PageLinks(const Request& request, const EntryAnswer& answer);

}  // namespace assay::web

#endif  // SERVER_WEB_PAGES_ENTRY_LIST_H_
