// Where the database has the fields of the history (common/history_fields.h).

#ifndef SERVER_STORE_HISTORY_FIELDS_SQL_H_
#define SERVER_STORE_HISTORY_FIELDS_SQL_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/history_fields.h"

namespace assay::store {

// How a field's values are kept.
enum class SqlForm {
  kPlain,   // text or number as it is, or null
  kId,      // the number of an id, which `prefix` begins: "e-"
  kFlag,    // 0 or 1, or null
  kMicros,  // since 1970
  kExists,  // many: `sql` selects them as `v`, correlated with the row
  kKeyed,   // of a map: `sql` is the key of the entry that has them
};

struct SqlField {
  const char* name;
  const char* sql;
  SqlForm form = SqlForm::kPlain;
  const char* prefix = "";
  bool is_never_null = false;
};

// Every row of `kind`, and by what they are ordered in the end.
struct SqlSource {
  const char* from;
  std::vector<std::string> tie_break;  // "t.id DESC"; unique together
  // Columns that say whose it is and when it is published; null: anybody may see it who may ask.
  const char* organization;
  const char* published_at_us;
};

const SqlSource& SourceOf(HistoryKind kind);

// The place of the field of this name, which is one of HistoryFields(kind).
const SqlField& SqlFieldOf(HistoryKind kind, absl::string_view name);

}  // namespace assay::store

#endif  // SERVER_STORE_HISTORY_FIELDS_SQL_H_
