#include "cli/terminal/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace assay::cli {
namespace {

constexpr int kGap = 2;                // blanks between columns
constexpr int kReadableWidthMin = 20;  // a text is not cut below this while a column may go
constexpr int kWidthMin = 8;           // nor below this ever

int Total(const std::vector<int>& widths) {
  int total = -kGap;
  for (const int width : widths)
    total += width + (width > 0 ? kGap : 0);
  return total;
}

// Takes one place from the widest text column that is wider than `floor`. False if there is none.
bool CutWidest(const Table& table, int floor, std::vector<int>* widths) {
  size_t widest = widths->size();
  for (size_t c = 0; c < widths->size(); ++c) {
    if (table.columns[c].format != Format::kText || (*widths)[c] <= floor) continue;
    if (widest == widths->size() || (*widths)[c] > (*widths)[widest]) widest = c;
  }
  if (widest == widths->size()) return false;
  --(*widths)[widest];
  return true;
}

// Leaves out the least important column. False if all that are left must stay.
bool LeaveOutOne(const Table& table, std::vector<int>* widths) {
  size_t least = widths->size();
  for (size_t c = 0; c < widths->size(); ++c) {
    if (table.columns[c].priority == 0 || (*widths)[c] == 0) continue;
    if (least == widths->size() || table.columns[c].priority >= table.columns[least].priority)
      least = c;
  }
  if (least == widths->size()) return false;
  (*widths)[least] = 0;
  return true;
}

bool IsRightAligned(Format format) {
  return format == Format::kMinutes || format == Format::kSeconds || format == Format::kMillis ||
         format == Format::kElapsed || format == Format::kPercent || format == Format::kBytes ||
         format == Format::kNumber;
}

// One line. Blanks are written only before further text, so there are no trailing ones.
std::string RenderRow(const Table& table, const std::vector<std::string>& cells,
                      const std::vector<int>& widths, const Style& style, bool is_header) {
  std::string line;
  std::string pending;
  for (size_t c = 0; c < cells.size(); ++c) {
    if (widths[c] == 0) continue;
    const std::string text = Truncate(cells[c], widths[c], style.is_utf8());
    const std::string padding(static_cast<size_t>(widths[c] - DisplayWidth(text)), ' ');
    Tone tone = is_header ? Tone::kStrong : Tone::kPlain;
    if (!is_header && table.columns[c].format == Format::kState) tone = ToneOf(text);
    const bool is_right = IsRightAligned(table.columns[c].format);
    if (is_right) pending += padding;
    if (!text.empty()) {
      absl::StrAppend(&line, pending, style.Paint(text, tone));
      pending.clear();
    }
    if (!is_right) pending += padding;
    pending += std::string(kGap, ' ');
  }
  return line;
}

}  // namespace

std::vector<int> FitWidths(const Table& table, int available, bool is_cut) {
  std::vector<int> widths(table.columns.size(), 0);
  for (size_t c = 0; c < widths.size(); ++c) {
    for (const auto& row : table.rows)
      widths[c] = std::max(widths[c], DisplayWidth(row[c]));
    if (widths[c] > 0 && table.has_header)
      widths[c] = std::max(widths[c], DisplayWidth(table.columns[c].title));
  }
  if (!is_cut) return widths;
  const auto is_too_wide = [&] { return Total(widths) > available; };
  while (is_too_wide() && CutWidest(table, kReadableWidthMin, &widths)) {
  }
  while (is_too_wide() && LeaveOutOne(table, &widths)) {
  }
  while (is_too_wide() && CutWidest(table, kWidthMin, &widths)) {
  }
  return widths;
}

std::string RenderTable(const Table& table, const std::vector<int>& widths, const Style& style,
                        absl::string_view indent) {
  std::string text;
  if (table.has_header) {
    std::vector<std::string> titles;
    for (const Column& column : table.columns)
      titles.push_back(column.title);
    absl::StrAppend(&text, indent, RenderRow(table, titles, widths, style, true), "\n");
  }
  for (const auto& row : table.rows)
    absl::StrAppend(&text, indent, RenderRow(table, row, widths, style, false), "\n");
  return text;
}

}  // namespace assay::cli
