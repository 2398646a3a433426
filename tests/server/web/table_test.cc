#include "server/web/table.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::web {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Table Scores() {
  return {.caption = "Scores",
          .columns = {{.title = "Entry",
                       .member = "id",
                       .path = [](const Json& row) { return "/entries/" + row.value("id", ""); }},
                      {.title = "Time (min)",
                       .member = "score_minutes",
                       .format = CellFormat::kMinutes},
                      {.title = "Batch",
                       .member = "hyperparameters.global_batch_size",
                       .format = CellFormat::kInteger}},
          .rows = {{{"id", "e-1"}, {"score_minutes", 34.4239}},
                   {{"id", "<e-2>"}, {"hyperparameters", {{"global_batch_size", 16384}}}}}};
}

TEST(TableTest, ShowsRowsWithTheirLinks) {
  const std::string html = TableHtml(Scores()).Take();
  EXPECT_THAT(html, HasSubstr("<th scope=\"col\" class=\"n\">Time (min)</th>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\"><a href=\"/entries/e-1\">e-1</a></th>"
                              "<td class=\"n\">34.42</td>"));
  EXPECT_THAT(html, HasSubstr("<td class=\"n\">16,384</td>"));
  EXPECT_THAT(html, HasSubstr("&lt;e-2&gt;"));
  EXPECT_THAT(html, Not(HasSubstr("<e-2>")));
}

TEST(TableTest, SaysThatItIsEmpty) {
  Table table = Scores();
  table.rows = Json::array();
  table.empty = "No entries & no runs.";
  EXPECT_EQ(TableHtml(table).Take(), "<p class=\"none\">No entries &amp; no runs.</p>");
}

TEST(TableTest, WritesCsvWithWholeNumbers) {
  EXPECT_EQ(TableCsv(Scores()),
            "id,score_minutes,hyperparameters.global_batch_size\r\n"
            "e-1,34.4239,\r\n"
            "<e-2>,,16384\r\n");
}

TEST(TableTest, WritesNoFormulasIntoCsv) {
  Table table = {.columns = {{.title = "A", .member = "a"}}};
  for (const char* text : {"=cmd|' /C calc'!A0", "@SUM(1)", "+1+2", "-1.5", "a,b", "say \"x\""})
    table.rows.push_back({{"a", text}});
  EXPECT_EQ(TableCsv(table),
            "a\r\n'=cmd|' /C calc'!A0\r\n'@SUM(1)\r\n'+1+2\r\n-1.5\r\n\"a,b\"\r\n"
            "\"say \"\"x\"\"\"\r\n");
}

TEST(TableTest, ReadsValuesAsPeopleDo) {
  EXPECT_EQ(CellText("2026-11-23T10:04:05.123Z", CellFormat::kTime), "2026-11-23 10:04");
  EXPECT_EQ(CellText(true, CellFormat::kYesNo), "yes");
  EXPECT_EQ(CellText(1234567, CellFormat::kInteger), "1,234,567");
  EXPECT_EQ(CellText(-1234, CellFormat::kInteger), "-1,234");
  EXPECT_EQ(CellText(0.123456, CellFormat::kNumber), "0.1235");
  EXPECT_EQ(CellText(1.5e9, CellFormat::kBytes), "1.5 GB");
  EXPECT_EQ(CellText(nullptr, CellFormat::kMinutes), "");
  EXPECT_EQ(CellText("text", CellFormat::kMinutes), "text") << "what others put there";
  EXPECT_EQ(DurationText(7380), "2 h 03 min");
}

}  // namespace
}  // namespace assay::web
