// The sections of an entry's page on what its nodes witnessed: first touch and energy.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

#include "common/client/touch_records.h"
#include "server/web/pages/entry_reading.h"

namespace assay::web {
namespace {

// Files of touches are read for a page until there are so many.
constexpr size_t kTouchFilesMax = 48;

std::vector<TableColumn> TouchColumns() {
  return {RunColumn("run"),
          {.title = "Node", .member = "node", .format = CellFormat::kInteger},
          {.title = "Strength", .member = "assurance"},
          {.title = "Off by", .member = "off_by"},
          {.title = "By", .member = "by"},
          {.title = "Mechanism", .member = "mechanism"},
          {.title = "Watching", .member = "watched"},
          {.title = "Holes", .member = "codes", .format = CellFormat::kWords},
          {.title = "In words", .member = "sentence", .format = CellFormat::kWords}};
}

// What a run's record says where it has no files: imported ones, or those of old agents.
Json TouchRow(const Json& run) {
  Json row = {{"run", TextOf(run, "id")}};
  const std::string assurance = TextOf(run, "touch_assurance");
  row["assurance"] = assurance.empty() ? "self-reported" : assurance;
  if (const Json& codes = MemberAt(run, "touch_hole_codes"); codes.is_array()) row["codes"] = codes;
  const Json& after_ms = MemberAt(run, "touch_after_run_start_ms");
  row["sentence"] =
      after_ms.is_number()
          ? absl::StrCat("seen ", CellText(after_ms, CellFormat::kNumber), " ms after run_start")
          : std::string("no node witnessed it: only the log says when the run began");
  return row;
}

}  // namespace

Html TouchSection(const Context& context, const EntryReading& reading, Json* json) {
  Html html;
  html.Raw("<h2 id=\"touch\">First touch of the data</h2>");
  html.Raw(
          "<p class=\"note\">The clock of a run has to start before its data is touched. How well "
          "that was seen is its ")
      .Link("/help#assurance", "strength");
  html.Raw("; ")
      .Link("/help#holes", "holes")
      .Raw(" are what could have been before it, unseen.</p>");
  Table table{.caption = "First touch of each run, by its nodes",
              .empty = "No run has ended yet.",
              .columns = TouchColumns()};
  size_t files = 0;
  for (size_t i = 0; i < reading.runs.size(); ++i) {
    Json touches = Json::array();
    if (files < kTouchFilesMax && reading.runs[i].artifacts_size() > 1) {
      absl::StatusOr<Json> found =
          client::TouchesOf(context.client, reading.runs[i], absl::UTCTimeZone());
      if (found.ok()) touches = *std::move(found);
    }
    files += touches.size();
    if (touches.empty() && reading.runs[i].has_run_start_ms())
      touches.push_back(TouchRow(reading.run_rows[i]));
    for (Json& touch : touches) {
      touch["run"] = TextOf(reading.run_rows[i], "id");
      table.rows.push_back(std::move(touch));
    }
  }
  (*json)["touches"] = table.rows;
  return html.Add(TableHtml(table));
}

Html EnergySection(const EntryReading& reading) {
  Html html;
  html.Raw("<h2 id=\"energy\">Energy</h2>");
  const auto is_metered = [](const Json& run) {
    return MemberAt(run, "energy_joules").is_number();
  };
  if (std::none_of(reading.run_rows.begin(), reading.run_rows.end(), is_metered))
    return html.Raw("<p class=\"none\">Not measured: not every node of a run had a meter.</p>");
  if (const std::string text = TextOf(reading.json, "energy_text"); !text.empty())
    html.Raw("<p>").Text(text).Raw("</p>");
  Table table{.caption = "Energy to solution of each run",
              .columns = {RunColumn(),
                          {.title = "Energy (J)",
                           .member = "energy_joules",
                           .format = CellFormat::kInteger},
                          {.title = "Off by at most (J)",
                           .member = "energy_error_joules",
                           .format = CellFormat::kNumber},
                          {.title = "Scope", .member = "energy_scope"}},
              .rows = reading.run_rows};
  return html.Add(TableHtml(table));
}

}  // namespace assay::web
