#include "server/web/table.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace assay::web {
namespace {

bool IsNumeric(CellFormat format) {
  switch (format) {
    case CellFormat::kInteger:
    case CellFormat::kNumber:
    case CellFormat::kMinutes:
    case CellFormat::kSeconds:
    case CellFormat::kBytes:
      return true;
    case CellFormat::kText:
    case CellFormat::kWords:
    case CellFormat::kCode:
    case CellFormat::kTime:
    case CellFormat::kDigest:
    case CellFormat::kYesNo:
      return false;
  }
  return false;
}

std::string NumberText(double value, CellFormat format) {
  if (!std::isfinite(value)) return "";
  if (format == CellFormat::kMinutes) return absl::StrFormat("%.2f", value);
  if (format == CellFormat::kSeconds) return absl::StrFormat("%.3f", value);
  if (format == CellFormat::kBytes) return BytesText(value);
  constexpr double kWholeMax = 1e15;
  if (std::abs(value) < kWholeMax && value == std::floor(value))
    return GroupDigits(static_cast<int64_t>(value));
  return absl::StrFormat("%.4g", value);
}

std::string WordsText(const Json& value) {
  std::vector<std::string> words;
  for (const Json& word : value)
    words.push_back(word.is_string() ? word.get<std::string>() : client::RawText(word));
  return absl::StrJoin(words, ", ");
}

Html CellHtml(const TableColumn& column, const Json& row) {
  if (column.draw) return column.draw(row);
  Html html;
  const std::string text = CellText(MemberAt(row, column.member), column.format);
  const std::string path = column.path ? column.path(row) : "";
  if (text.empty()) return html.Raw("<span class=\"none\">–</span>");
  if (column.format == CellFormat::kCode || column.format == CellFormat::kDigest)
    return html.Raw("<code>").Link(path, text).Raw("</code>");
  return html.Link(path, text);
}

void AddRow(const Table& table, const Json& row, Html* html) {
  html->Raw("<tr");
  if (table.row_id)
    if (const std::string id = table.row_id(row); !id.empty()) html->Attribute("id", id);
  html->Raw(">");
  bool is_first = true;
  for (const TableColumn& column : table.columns) {
    const bool is_number = IsNumeric(column.format);
    if (is_first) {
      html->Raw("<th scope=\"row\"");
    } else {
      html->Raw("<td");
    }
    if (is_number) html->Raw(" class=\"n\"");
    if (column.format == CellFormat::kWords) html->Raw(" class=\"w\"");
    html->Raw(">").Add(CellHtml(column, row));
    if (is_first) {
      html->Raw("</th>");
    } else {
      html->Raw("</td>");
    }
    is_first = false;
  }
  html->Raw("</tr>");
}

// What a spreadsheet would run (OWASP, CSV injection). Numbers may begin with a minus sign.
bool IsFormula(absl::string_view text) {
  if (text.empty() || !absl::StrContains("=+-@\t\r", text.substr(0, 1))) return false;
  double number = 0;
  return !absl::SimpleAtod(text, &number);
}

std::string CsvCell(std::string text) {
  if (IsFormula(text)) text = absl::StrCat("'", text);
  if (text.find_first_of("\",\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace

std::string GroupDigits(int64_t value) {
  std::string digits = absl::StrCat(value);
  constexpr size_t kGroup = 3;
  const size_t sign = value < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > sign + kGroup;) {
    at -= kGroup;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string BytesText(double bytes) {
  constexpr double kKilo = 1000;
  const char* const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  while (std::abs(bytes) >= kKilo && unit + 1 < std::size(units)) {
    bytes /= kKilo;
    ++unit;
  }
  return unit == 0 ? absl::StrFormat("%.0f %s", bytes, units[unit])
                   : absl::StrFormat("%.3g %s", bytes, units[unit]);
}

std::string DurationText(double seconds) {
  constexpr double kMinute = 60;
  constexpr double kHour = 3600;
  if (seconds < 2 * kMinute) return absl::StrFormat("%.1f s", seconds);
  if (seconds < 2 * kHour) return absl::StrFormat("%.1f min", seconds / kMinute);
  const auto minutes = static_cast<int64_t>(seconds / kMinute);
  return absl::StrFormat("%d h %02d min", minutes / 60, minutes % 60);
}

const Json& MemberAt(const Json& row, absl::string_view path) {
  static const Json* const kNull = new Json(nullptr);
  if (row.is_object())
    if (const auto whole = row.find(std::string(path)); whole != row.end()) return *whole;
  const Json* value = &row;
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    if (!value->is_object()) return *kNull;
    const auto found = value->find(std::string(name));
    if (found == value->end()) return *kNull;
    value = &*found;
  }
  return *value;
}

std::string CellText(const Json& value, CellFormat format) {
  constexpr size_t kDigestShown = 12;
  constexpr size_t kToMinute = 16;
  if (value.is_null() || value.is_discarded()) return "";
  if (value.is_number() && IsNumeric(format)) return NumberText(value.get<double>(), format);
  if (value.is_array()) return WordsText(value);
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  std::string text = client::RawText(value);
  if (format == CellFormat::kDigest) return text.substr(0, kDigestShown);
  // RFC 3339 in UTC.
  if (format == CellFormat::kTime && text.size() > kToMinute && text[10] == 'T')
    return absl::StrCat(text.substr(0, 10), " ", text.substr(11, 5));
  return text;
}

Html TableHtml(const Table& table) {
  Html html;
  if (table.rows.empty()) return html.Raw("<p class=\"none\">").Text(table.empty).Raw("</p>");
  html.Raw("<div class=\"scroll\" tabindex=\"0\" role=\"region\"");
  html.Attribute("aria-label", absl::StrCat("Table: ", table.caption));
  html.Raw("><table><caption>").Text(table.caption).Raw("</caption><thead><tr>");
  for (const TableColumn& column : table.columns) {
    html.Raw("<th scope=\"col\"");
    if (IsNumeric(column.format)) html.Raw(" class=\"n\"");
    html.Raw(">").Text(column.title).Raw("</th>");
  }
  html.Raw("</tr></thead><tbody>");
  for (const Json& row : table.rows)
    AddRow(table, row, &html);
  return html.Raw("</tbody></table></div>");
}

std::string TableCsv(const Table& table) {
  std::vector<std::string> line;
  for (const TableColumn& column : table.columns)
    if (!column.member.empty()) line.push_back(CsvCell(column.member));
  std::string csv = absl::StrCat(absl::StrJoin(line, ","), "\r\n");
  for (const Json& row : table.rows) {
    line.clear();
    for (const TableColumn& column : table.columns)
      if (!column.member.empty())
        line.push_back(CsvCell(client::RawText(MemberAt(row, column.member))));
    absl::StrAppend(&csv, absl::StrJoin(line, ","), "\r\n");
  }
  return csv;
}

Html FactsHtml(const Json& value, const std::vector<TableColumn>& facts) {
  Html html;
  html.Raw("<dl class=\"facts\">");
  for (const TableColumn& fact : facts) {
    if (!fact.draw && CellText(MemberAt(value, fact.member), fact.format).empty()) continue;
    const Html cell = CellHtml(fact, value);
    if (cell.empty()) continue;
    html.Raw("<div><dt>").Text(fact.title).Raw("</dt><dd>").Add(cell).Raw("</dd></div>");
  }
  return html.Raw("</dl>");
}

}  // namespace assay::web
