#include "cli/history/history_database.h"

#include <algorithm>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

#include "cli/command/filter_terms.h"
#include "common/client/history.h"
#include "common/filter.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr int64_t kAllRows = std::numeric_limits<int64_t>::max();

struct ExportTable {
  HistoryKind kind;
  const char* name;
  const char* primary_key;           // columns; "": none
  std::vector<const char*> indices;  // columns of each
};

const std::vector<ExportTable>& Tables() {
  static const auto* const kTables = new std::vector<ExportTable>{
      {HistoryKind::kEntry, "entries", "id", {"benchmark, round", "organization", "system"}},
      {HistoryKind::kRun, "runs", "id", {"entry", "benchmark, round", "system"}},
      {HistoryKind::kFinding, "findings", "", {"entry", "run", "rule"}},
      {HistoryKind::kHyperparameter, "hyperparameters", "entry, key", {"key"}},
      {HistoryKind::kWorker, "workers", "id", {}}};
  return *kTables;
}

std::string SqlTypeOf(HistoryType type) {
  switch (type) {
    case HistoryType::kInteger:
    case HistoryType::kBool:
      return "INTEGER";
    case HistoryType::kNumber:
      return "REAL";
    default:
      return "TEXT";
  }
}

// What a column's values are, beyond SQLite's five types.
std::string MeaningOf(const HistoryField& field) {
  std::string meaning(field.help);
  if (!field.choices.empty()) meaning = absl::StrJoin(field.choices, ", ");
  const auto add = [&meaning](absl::string_view more) {
    absl::StrAppend(&meaning, meaning.empty() ? "" : "; ", more);
  };
  if (field.type == HistoryType::kTime) add("UTC, 2026-11-23T10:00:00.000000Z");
  if (field.type == HistoryType::kBool) add("1 or 0");
  if (field.type == HistoryType::kTexts) add("a JSON array");
  if (field.is_private) add("of your own organization's alone");
  return meaning;
}

// A map's members are rows of another table.
std::vector<const HistoryField*> FieldsOf(HistoryKind kind, bool is_private) {
  std::vector<const HistoryField*> fields;
  for (const HistoryField& field : HistoryFields(kind))
    if (field.type != HistoryType::kMap && field.is_private == is_private) fields.push_back(&field);
  return fields;
}

std::string ColumnOf(const HistoryField& field) {
  return client::ExportName(field.name, field.unit);
}

DatabaseValue ValueOf(const v1::QueryValue& value) {
  switch (value.value_case()) {
    case v1::QueryValue::kInteger:
      return value.integer();
    case v1::QueryValue::kNumber:
      return value.number();
    case v1::QueryValue::kTruth:
      return int64_t{value.truth()};
    case v1::QueryValue::kText:
      return value.text();
    case v1::QueryValue::kTime:  // as wide as all others, so that text is in order of time
      return absl::FormatTime(
          "%Y-%m-%dT%H:%M:%E6SZ",
          absl::FromUnixSeconds(value.time().seconds()) + absl::Nanoseconds(value.time().nanos()),
          absl::UTCTimeZone());
    case v1::QueryValue::kTexts:
      return client::ValueJson(value).dump();
    case v1::QueryValue::VALUE_NOT_SET:
      return {};
  }
  return {};
}

// Filters that together find what belongs to the entries: each has as many terms as one may have.
std::vector<std::string> FiltersOfEntries(const std::vector<std::string>& ids) {
  std::vector<std::string> filters;
  for (size_t first = 0; first < ids.size(); first += kFilterTermsMax) {
    const size_t end = std::min<size_t>(ids.size(), first + kFilterTermsMax);
    std::vector<std::string> terms;
    for (size_t i = first; i < end; ++i)
      terms.push_back(absl::StrCat("entry=", ids[i]));
    filters.push_back(absl::StrJoin(terms, " OR "));
  }
  return filters;
}

class TableWriter {
 public:
  TableWriter(const client::Client* client, const HistoryExport* what, ExportProgress progress,
              DatabaseFile* file)
      : client_(client), what_(what), progress_(progress), file_(file) {}

  absl::Status Write(const ExportTable& table) {
    counts_.emplace_back(table.name, 0);
    RETURN_IF_ERROR(Create(table));
    for (const std::string& filter : FiltersFor(table.kind)) {
      RETURN_IF_ERROR(Fill(table, filter));
      RETURN_IF_ERROR(FillPrivate(table, filter));
    }
    for (const char* const columns : table.indices)
      RETURN_IF_ERROR(file_->Run(absl::StrCat("CREATE INDEX ",
                                              SqlName(absl::StrCat(table.name, " by ", columns)),
                                              " ON ", table.name, " (", columns, ")")));
    return absl::OkStatus();
  }

  const TableCounts& counts() const { return counts_; }

 private:
  bool IsOfEntries(HistoryKind kind) const {
    return !what_->kind.has_value() && kind != HistoryKind::kEntry && kind != HistoryKind::kWorker;
  }

  std::vector<std::string> FiltersFor(HistoryKind kind) const {
    if (!IsOfEntries(kind)) return {what_->filter};
    if (what_->filter.empty()) return {""};
    return FiltersOfEntries({entries_.begin(), entries_.end()});
  }

  absl::Status Create(const ExportTable& table) {
    std::vector<std::string> columns;
    for (const bool is_private : {false, true}) {
      for (const HistoryField* const field : FieldsOf(table.kind, is_private)) {
        const std::string type = SqlTypeOf(field->type);
        columns.push_back(absl::StrCat(SqlName(ColumnOf(*field)), " ", type));
        RETURN_IF_ERROR(
            file_->Run("INSERT INTO columns VALUES (?, ?, ?, ?, ?)",
                       std::vector<DatabaseValue>{std::string(table.name), ColumnOf(*field), type,
                                                  std::string(field->unit), MeaningOf(*field)}));
      }
    }
    if (*table.primary_key != 0)
      columns.push_back(absl::StrCat("PRIMARY KEY (", table.primary_key, ")"));
    return file_->Run(
        absl::StrCat("CREATE TABLE ", table.name, " (", absl::StrJoin(columns, ", "), ")"));
  }

  absl::Status Fill(const ExportTable& table, const std::string& filter) {
    const std::vector<const HistoryField*> fields = FieldsOf(table.kind, /*is_private=*/false);
    std::vector<std::string> columns;
    v1::QueryResultsRequest request;
    for (const HistoryField* const field : fields) {
      request.add_columns(std::string(field->name));
      columns.push_back(SqlName(ColumnOf(*field)));
    }
    const std::string insert =
        absl::StrCat("INSERT INTO ", table.name, " (", absl::StrJoin(columns, ", "), ") VALUES (",
                     absl::StrJoin(std::vector<std::string>(fields.size(), "?"), ", "), ")");
    // What has come since the entries were read is left out, so that everything has its entry.
    const auto entry = std::find_if(fields.begin(), fields.end(), [](const HistoryField* field) {
      return field->name == "entry";
    });
    const bool has_entries = IsOfEntries(table.kind);
    const int entry_at = static_cast<int>(entry - fields.begin());
    return ForEachRow(table.kind, filter, std::move(request),
                      [&](const v1::QueryRow& row, int64_t total) -> absl::Status {
                        if (has_entries && !entries_.contains(row.values(entry_at).text()))
                          return absl::OkStatus();
                        if (table.kind == HistoryKind::kEntry)
                          entries_.insert(row.values(0).text());
                        std::vector<DatabaseValue> values;
                        for (const v1::QueryValue& value : row.values())
                          values.push_back(ValueOf(value));
                        RETURN_IF_ERROR(file_->Run(insert, values));
                        return progress_(table.name, ++counts_.back().second, total);
                      });
  }

  // A question that names such a field is answered of the caller's own organisation alone, so it is
  // asked apart.
  absl::Status FillPrivate(const ExportTable& table, const std::string& filter) {
    v1::QueryResultsRequest request;
    std::vector<std::string> settings;
    for (const HistoryField* const field : FieldsOf(table.kind, /*is_private=*/true)) {
      request.add_columns(std::string(field->name));
      settings.push_back(absl::StrCat(SqlName(ColumnOf(*field)), " = ?"));
    }
    if (settings.empty()) return absl::OkStatus();
    request.add_columns("id");
    const std::string update = absl::StrCat("UPDATE ", table.name, " SET ",
                                            absl::StrJoin(settings, ", "), " WHERE id = ?");
    return ForEachRow(table.kind, filter, std::move(request),
                      [&](const v1::QueryRow& row, int64_t total) -> absl::Status {
                        std::vector<DatabaseValue> values;
                        for (const v1::QueryValue& value : row.values())
                          values.push_back(ValueOf(value));
                        RETURN_IF_ERROR(file_->Run(update, values));
                        return progress_(table.name, counts_.back().second, total);
                      });
  }

  absl::Status ForEachRow(HistoryKind kind, const std::string& filter,
                          v1::QueryResultsRequest request,
                          absl::FunctionRef<absl::Status(const v1::QueryRow&, int64_t)> take) {
    request.set_kind(client::ProtoOf(kind));
    request.set_filter(filter);
    const absl::Status status = client::ForEachPage(
        *client_, std::move(request), kAllRows,
        [&](const v1::QueryResultsResponse& page) -> absl::Status {
          for (const v1::QueryRow& row : page.rows())
            RETURN_IF_ERROR(take(row, page.total_count()));
          if (kind == what_->kind.value_or(HistoryKind::kEntry) && page.total_count() == 0)
            return CheckNamedRounds(*client_, kind, page.filter());
          return absl::OkStatus();
        });
    // In an export of everything, the public has no workers.
    const bool is_optional = kind == HistoryKind::kWorker && !what_->kind.has_value();
    return is_optional && absl::IsPermissionDenied(status) ? absl::OkStatus() : status;
  }

  const client::Client* const client_;
  const HistoryExport* const what_;
  const ExportProgress progress_;
  DatabaseFile* const file_;
  std::set<std::string> entries_;  // ids of those written
  TableCounts counts_;
};

}  // namespace

absl::StatusOr<TableCounts> WriteHistoryTables(const client::Client& client,
                                               const HistoryExport& what, ExportProgress progress,
                                               DatabaseFile* file) {
  RETURN_IF_ERROR(
      file->Run("CREATE TABLE columns (table_name TEXT, name TEXT, type TEXT, unit TEXT, "
                "meaning TEXT, PRIMARY KEY (table_name, name))"));
  TableWriter writer(&client, &what, progress, file);
  for (const ExportTable& table : Tables()) {
    const bool is_whole = what.filter.empty() || table.kind != HistoryKind::kWorker;
    if (what.kind.has_value() ? table.kind == *what.kind : is_whole)
      RETURN_IF_ERROR(writer.Write(table));
  }
  return writer.counts();
}

absl::Status WriteHistoryMeta(const std::vector<std::pair<std::string, std::string>>& values,
                              DatabaseFile* file) {
  RETURN_IF_ERROR(file->Run("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)"));
  for (const auto& [key, value] : values)
    RETURN_IF_ERROR(
        file->Run("INSERT INTO meta VALUES (?, ?)", std::vector<DatabaseValue>{key, value}));
  return absl::OkStatus();
}

}  // namespace assay::cli
