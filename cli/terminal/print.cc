#include "cli/terminal/print.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"

#include "cli/terminal/document.h"
#include "cli/terminal/table.h"
#include "cli/terminal/template.h"
#include "common/client/suggest.h"
#include "common/printable.h"
#include "common/status.h"

namespace assay::cli {
namespace {

struct OutputName {
  const char* name;
  PrintOptions::Output output;
};
constexpr OutputName kOutputs[] = {
    {"table", PrintOptions::Output::kTable}, {"wide", PrintOptions::Output::kWide},
    {"plain", PrintOptions::Output::kPlain}, {"name", PrintOptions::Output::kName},
    {"json", PrintOptions::Output::kJson},   {"ndjson", PrintOptions::Output::kNdjson},
    {"yaml", PrintOptions::Output::kYaml},   {"csv", PrintOptions::Output::kCsv}};

constexpr int kLabelGap = 2;  // blanks between a label and its value

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string PlainField(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\t", " "}, {"\r", " "}, {"\n", " "}});
}

// A name for the schema of a list of what `schema` names: assay.run/v1, assay.run_list/v1.
std::string ListSchema(absl::string_view schema) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(schema, absl::MaxSplits('/', 1));
  return absl::StrCat(parts.first, "_list/", parts.second);
}

std::vector<std::string> FieldNames(const Json& value) {
  std::vector<std::string> names;
  for (const auto& [name, member] : value.items())
    names.push_back(name);
  return names;
}

// Every field that occurs in any item, in the order of first occurrence.
std::vector<std::string> AllFieldNames(const ListView& view) {
  std::vector<std::string> names;
  for (const Json& item : view.items) {
    for (const std::string& name : FieldNames(item))
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  for (const Column& column : view.columns)
    if (std::find(names.begin(), names.end(), column.field) == names.end())
      names.push_back(column.field);
  return names;
}

absl::Status CheckFields(absl::string_view wanted, const std::vector<std::string>& known) {
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(wanted, ','))) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat("--json: there is no field '", name, "'",
                                                   client::DidYouMean(name, known),
                                                   " (--json=? lists them)"));
  }
  return absl::OkStatus();
}

Json WithSchema(absl::string_view schema, const Json& value) {
  Json result = {{"schema", std::string(schema)}};
  result.update(value);
  return result;
}

Json Pick(const Json& value, absl::string_view fields) {
  if (fields.empty()) return value;
  Json picked = Json::object();
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(fields, ',')))
    if (value.contains(name)) picked[name] = value[name];
  return picked;
}

// "0:42", "12:07", "1:02:33".
std::string FormatElapsed(double seconds) {
  const auto all = static_cast<int64_t>(std::clamp(seconds, 0.0, 1e9));
  if (all < 3600) return absl::StrFormat("%d:%02d", all / 60, all % 60);
  return absl::StrFormat("%d:%02d:%02d", all / 3600, all / 60 % 60, all % 60);
}

}  // namespace

std::string Style::Paint(absl::string_view text, Tone tone) const {
  if (!has_color_ || tone == Tone::kPlain || text.empty()) return std::string(text);
  return absl::StrCat(StyleMark(key_, tone), text, StyleMark(key_, Tone::kPlain));
}

std::string Style::Mark(Tone tone) const {
  if (tone == Tone::kGood) return Paint(is_utf8_ ? "✔" : "ok", tone);
  if (tone == Tone::kWarn) return Paint(is_utf8_ ? "⚠" : "warn", tone);
  if (tone == Tone::kBad) return Paint(is_utf8_ ? "✖" : "FAIL", tone);
  return is_utf8_ ? "·" : "-";
}

Tone ToneOf(absl::string_view state) {
  static const auto* const kGood = new std::set<std::string>{
      "valid", "succeeded", "alive", "converged", "ok", "yes", "idle", "tuned", "borrowed"};
  static const auto* const kBad = new std::set<std::string>{
      "invalid", "failed", "lost", "error", "fail", "not converged", "refused"};
  static const auto* const kWarn = new std::set<std::string>{
      "suspect", "draining", "warning", "warn", "cancelled", "gone", "unknown"};
  const std::string text(state);
  if (kGood->count(text) > 0) return Tone::kGood;
  if (kBad->count(text) > 0) return Tone::kBad;
  if (kWarn->count(text) > 0) return Tone::kWarn;
  return Tone::kPlain;
}

int DisplayWidth(absl::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;  // not a continuation byte
  }));
}

std::string Truncate(absl::string_view text, int width, bool is_utf8) {
  if (DisplayWidth(text) <= width) return std::string(text);
  size_t end = 0;
  for (int kept = 0; end < text.size(); ++end) {
    const bool starts = (static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80U;
    if (starts && ++kept >= width) break;
  }
  return absl::StrCat(text.substr(0, end), is_utf8 ? "…" : "+");
}

std::string FormatBytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  while (std::abs(bytes) >= 999.5 && unit + 1 < std::size(kUnits)) {
    bytes /= 1000;
    ++unit;
  }
  if (unit == 0) return absl::StrFormat("%.0f B", bytes);
  return absl::StrFormat("%.*f %s", bytes < 9.95 ? 1 : 0, bytes, kUnits[unit]);
}

std::vector<std::string> OutputNames() {
  std::vector<std::string> names;
  for (const OutputName& output : kOutputs)
    names.emplace_back(output.name);
  return names;
}

std::optional<PrintOptions::Output> FindOutput(absl::string_view name) {
  for (const OutputName& output : kOutputs)
    if (name == output.name) return output.output;
  return std::nullopt;
}

bool IsJsonShape(PrintOptions::Output output) {
  return output == PrintOptions::Output::kJson || output == PrintOptions::Output::kNdjson ||
         output == PrintOptions::Output::kYaml || output == PrintOptions::Output::kTemplate;
}

Printer::Printer(const Environment* environment, PrintOptions options)
    : env_(environment),
      options_(std::move(options)),
      style_(options_.has_color, environment->IsUtf8(), environment->style_key) {}

bool Printer::IsStructured() const {
  return options_.output != PrintOptions::Output::kTable &&
         options_.output != PrintOptions::Output::kWide;
}

bool Printer::IsJson() const {
  return IsJsonShape(options_.output);
}

std::string Printer::FormatField(const Json& value, Format format) const {
  const bool is_number = value.is_number();
  switch (format) {
    case Format::kText:
    case Format::kState:
      return client::RawText(value);
    case Format::kTime: {
      absl::Time time;
      std::string error;
      if (!absl::ParseTime(absl::RFC3339_full, client::RawText(value), &time, &error))
        return client::RawText(value);
      return absl::FormatTime("%Y-%m-%d %H:%M:%S %Z", time, env_->time_zone);
    }
    case Format::kMinutes:
      return is_number ? absl::StrFormat("%.2f min", value.get<double>()) : client::RawText(value);
    case Format::kSeconds:
      return is_number ? absl::StrFormat("%.1f s", value.get<double>()) : client::RawText(value);
    case Format::kMillis:
      return is_number ? absl::StrFormat("%.3f s", value.get<double>()) : client::RawText(value);
    case Format::kElapsed:
      return is_number ? FormatElapsed(value.get<double>()) : client::RawText(value);
    case Format::kPercent:
      return is_number ? absl::StrFormat("%.0f %%", 100 * value.get<double>())
                       : client::RawText(value);
    case Format::kBytes:
      return is_number ? FormatBytes(value.get<double>()) : client::RawText(value);
    case Format::kNumber:
      return value.is_number_float() ? absl::StrFormat("%.4g", value.get<double>())
                                     : client::RawText(value);
    case Format::kYesNo:
      return value.is_boolean() ? (value.get<bool>() ? "yes" : "no") : client::RawText(value);
    case Format::kDigest:
      return client::RawText(value).substr(0, 12);
    case Format::kWords:
      return absl::StrJoin(value, " ", [](std::string* out, const Json& word) {
        out->append(client::RawText(word));
      });
  }
  return client::RawText(value);
}

void Printer::TableLines(const Json& items, const std::vector<Column>& columns,
                         absl::string_view indent) const {
  const bool is_wide = options_.output == PrintOptions::Output::kWide;
  constexpr int kWideOnly = 9;
  Table table{.has_header = options_.has_header};
  for (const Column& column : columns)
    if (is_wide || column.priority < kWideOnly) table.columns.push_back(column);
  for (const Json& item : items) {
    std::vector<std::string>& row = table.rows.emplace_back();
    for (const Column& column : table.columns) {
      const Json* member = Member(item, column.field);
      // Escaped here already, so that columns are as wide as what is shown.
      row.push_back(member == nullptr ? ""
                                      : Printable(PlainField(FormatField(*member, column.format))));
    }
  }
  const int available = env_->width - DisplayWidth(indent);
  *env_->out << RenderTable(table, FitWidths(table, available, !is_wide), style_, indent);
}

void Printer::FieldLines(const ShowView& view) const {
  int label_width = 0;
  for (const Column& field : view.fields)
    if (Member(view.value, field.field) != nullptr)
      label_width = std::max(label_width, DisplayWidth(field.title));
  for (const Column& field : view.fields) {
    const Json* member = Member(view.value, field.field);
    if (member == nullptr) continue;
    const std::string text = PlainField(FormatField(*member, field.format));
    const Tone tone = field.format == Format::kState ? ToneOf(text) : Tone::kPlain;
    const size_t padding = static_cast<size_t>(label_width - DisplayWidth(field.title) + kLabelGap);
    *env_->out << style_.Paint(field.title, Tone::kFaint) << std::string(padding, ' ')
               << style_.Paint(text, tone) << "\n";
  }
}

void Printer::DelimitedLines(const Json& items, const std::vector<Column>& columns,
                             bool is_csv) const {
  const auto print_line = [&](const std::vector<std::string>& cells) {
    *env_->out << absl::StrJoin(cells, is_csv ? "," : "\t") << "\n";
  };
  std::vector<std::string> cells;
  for (const Column& column : columns)
    cells.push_back(column.field);
  if (options_.has_header) print_line(cells);
  for (const Json& item : items) {
    cells.clear();
    for (const Column& column : columns) {
      const Json* member = Member(item, column.field);
      const std::string text = member == nullptr ? "" : client::RawText(*member);
      cells.push_back(is_csv ? CsvField(text) : PlainField(text));
    }
    print_line(cells);
  }
}

absl::Status Printer::PrintJsonList(const ListView& view) const {
  const std::vector<std::string> known = AllFieldNames(view);
  if (options_.json_fields == "?") {
    for (const std::string& name : known)
      *env_->out << name << "\n";
    return absl::OkStatus();
  }
  if (!options_.json_fields.empty()) RETURN_IF_ERROR(CheckFields(options_.json_fields, known));
  Json items = Json::array();
  for (const Json& item : view.items)
    items.push_back(Pick(item, options_.json_fields));
  if (options_.output == PrintOptions::Output::kNdjson) {
    for (const Json& item : items)
      RETURN_IF_ERROR(PrintDocument(WithSchema(view.schema, item)));
    return absl::OkStatus();
  }
  Json document = {{"schema", ListSchema(view.schema)}};
  document.update(view.more);
  document["items"] = std::move(items);
  return PrintDocument(document);
}

absl::Status Printer::PrintJsonResource(const ShowView& view) const {
  const std::vector<std::string> known = FieldNames(view.value);
  if (options_.json_fields == "?") {
    *env_->out << absl::StrJoin(known, "\n") << "\n";
    return absl::OkStatus();
  }
  if (!options_.json_fields.empty()) RETURN_IF_ERROR(CheckFields(options_.json_fields, known));
  return PrintDocument(WithSchema(view.schema, Pick(view.value, options_.json_fields)));
}

absl::Status Printer::PrintDocument(const Json& document) const {
  if (!options_.jq.empty()) {
    ASSIGN_OR_RETURN(const std::string lines, FilterWithJq(options_.jq, document));
    *env_->exact_out() << lines;
  } else if (options_.output == PrintOptions::Output::kYaml) {
    *env_->out << "---\n" << ToYaml(document);
  } else {
    *env_->out << client::DumpSafely(document,
                                     options_.output == PrintOptions::Output::kJson ? 2 : -1)
               << "\n";
  }
  return absl::OkStatus();
}

absl::Status Printer::PrintNames(const Json& items) const {
  for (const Json& item : items) {
    const Json* name = Member(item, "id");
    if (name == nullptr) name = Member(item, "name");
    if (name == nullptr)
      return absl::InvalidArgumentError("-o name: what this command lists has neither id nor name");
    *env_->out << client::RawText(*name) << "\n";
  }
  return absl::OkStatus();
}

absl::Status Printer::PrintFilled(const Json& items, const std::vector<std::string>& known) const {
  ASSIGN_OR_RETURN(const Template filled, Template::Parse(options_.text_template));
  for (const std::string& field : filled.Fields()) {
    const bool is_known =
        std::find(known.begin(), known.end(), field.substr(0, field.find('.'))) != known.end() ||
        std::find(known.begin(), known.end(), field) != known.end();
    if (!is_known && !known.empty())
      return absl::InvalidArgumentError(absl::StrCat("-o tpl: there is no field '", field, "'",
                                                     client::DidYouMean(field, known),
                                                     " (--json=? lists them)"));
  }
  for (const Json& item : items)
    *env_->out << filled.Fill(item) << "\n";
  return absl::OkStatus();
}

absl::Status Printer::List(const ListView& view) const {
  switch (options_.output) {
    case PrintOptions::Output::kJson:
    case PrintOptions::Output::kNdjson:
    case PrintOptions::Output::kYaml:
      return PrintJsonList(view);
    case PrintOptions::Output::kTemplate:
      return PrintFilled(view.items, AllFieldNames(view));
    case PrintOptions::Output::kName:
      return PrintNames(view.items);
    case PrintOptions::Output::kPlain:
    case PrintOptions::Output::kCsv:
      DelimitedLines(view.items, view.columns, options_.output == PrintOptions::Output::kCsv);
      return absl::OkStatus();
    case PrintOptions::Output::kTable:
    case PrintOptions::Output::kWide:
      if (view.items.empty()) {
        *env_->err << view.empty_text << "\n";
      } else {
        TableLines(view.items, view.columns, "");
      }
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status Printer::Show(const ShowView& view) const {
  switch (options_.output) {
    case PrintOptions::Output::kJson:
    case PrintOptions::Output::kNdjson:
    case PrintOptions::Output::kYaml:
      return PrintJsonResource(view);
    case PrintOptions::Output::kTemplate:
      return PrintFilled(Json::array({view.value}), FieldNames(view.value));
    case PrintOptions::Output::kName:
      return PrintNames(Json::array({view.value}));
    case PrintOptions::Output::kCsv:
      DelimitedLines(Json::array({view.value}), view.fields, true);
      return absl::OkStatus();
    case PrintOptions::Output::kPlain:
      for (const Column& field : view.fields) {
        const Json* member = Member(view.value, field.field);
        if (member != nullptr)
          *env_->out << field.field << "\t" << PlainField(client::RawText(*member)) << "\n";
      }
      for (const Section& section : view.sections) {
        const Json* items = Member(view.value, section.field);
        if (items == nullptr || items->empty()) continue;
        *env_->out << "\n" << section.field << "\n";
        DelimitedLines(*items, section.columns, /*is_csv=*/false);
      }
      return absl::OkStatus();
    case PrintOptions::Output::kTable:
    case PrintOptions::Output::kWide:
      FieldLines(view);
      for (const Section& section : view.sections) {
        const Json* items = Member(view.value, section.field);
        if (items == nullptr || items->empty()) continue;
        *env_->out << "\n" << style_.Paint(section.title, Tone::kStrong) << "\n";
        TableLines(*items, section.columns, "  ");
      }
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status Printer::Item(absl::string_view schema, const Json& value) const {
  if (options_.json_fields == "?") {
    *env_->out << absl::StrJoin(FieldNames(value), "\n") << "\n";
    return absl::OkStatus();
  }
  const Json document = WithSchema(schema, Pick(value, options_.json_fields));
  if (options_.output == PrintOptions::Output::kTemplate) {
    ASSIGN_OR_RETURN(const Template filled, Template::Parse(options_.text_template));
    *env_->out << filled.Fill(document) << "\n" << std::flush;
    return absl::OkStatus();
  }
  if (!options_.jq.empty() || options_.output == PrintOptions::Output::kYaml)
    RETURN_IF_ERROR(PrintDocument(document));
  else
    *env_->out << client::DumpSafely(document, -1) << "\n";
  *env_->out << std::flush;
  return absl::OkStatus();
}

}  // namespace assay::cli
