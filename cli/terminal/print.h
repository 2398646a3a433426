// One way out for everything that a command shows: a list or one resource, as a table for people
// or as names, plain, CSV, JSON or YAML text for programs.
//
// A view is JSON plus the columns to show of it, so the renderings cannot disagree: the table
// formats a field for people, plain and CSV print its raw value, JSON is all of it.

#ifndef CLI_TERMINAL_PRINT_H_
#define CLI_TERMINAL_PRINT_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "cli/terminal/environment.h"
#include "cli/terminal/safe_stream.h"
#include "common/client/json.h"

namespace assay::cli {

using client::Json;

// How the table writes a field. Plain, CSV and JSON show the value itself.
enum class Format {
  kText,
  kState,    // coloured by what it means
  kTime,     // RFC 3339 in, local time out
  kMinutes,  // 7.21 min
  kSeconds,  // 21.8 s
  kMillis,   // 21.813 s
  kElapsed,  // 1:02:33, of seconds
  kPercent,  // 83 %, of a share
  kBytes,
  kNumber,  // four significant digits
  kYesNo,
  kDigest,  // the first 12 digits
  kWords,   // of a list, with blanks between them
};

struct Column {
  std::string title;
  std::string field;  // member of the JSON object; "a.b": b of its member a
  Format format = Format::kText;
  int priority = 0;  // where the width does not suffice, the highest goes first; 0 always stays
};

struct ListView {
  std::string schema;  // of one item: "assay.run/v1"
  Json items = Json::array();
  std::vector<Column> columns;
  std::string empty_text;      // what a person reads instead of an empty table
  Json more = Json::object();  // members of the JSON document beside its items
};

struct Section {
  std::string title;
  std::string field;  // a member that is an array of objects
  std::vector<Column> columns;
};

struct ShowView {
  std::string schema;
  Json value;
  std::vector<Column> fields;  // one line each; absent members are left out
  std::vector<Section> sections;
};

// Text for a SafeStream with this key, or the same text without colour.
class Style {
 public:
  Style(bool has_color, bool is_utf8, std::string key)
      : has_color_(has_color), is_utf8_(is_utf8), key_(std::move(key)) {}
  std::string Paint(absl::string_view text, Tone tone) const;
  // "ok", "warn" and "fail" as a mark: a symbol, or a word where symbols cannot be shown.
  std::string Mark(Tone tone) const;
  bool is_utf8() const { return is_utf8_; }
  bool has_color() const { return has_color_; }

 private:
  bool has_color_;
  bool is_utf8_;
  std::string key_;
};

struct PrintOptions {
  enum class Output { kTable, kWide, kPlain, kName, kJson, kNdjson, kYaml, kCsv, kTemplate };
  Output output = Output::kTable;
  std::string json_fields;    // "id,state"; "?" lists the fields; empty: all
  std::string text_template;  // kTemplate (template.h)
  std::string jq;             // program that filters the JSON document; empty: none
  bool has_header = true;
  bool has_color = false;
};

// What -o takes, in the order in which help tells it.
std::vector<std::string> OutputNames();
std::optional<PrintOptions::Output> FindOutput(absl::string_view name);

// True for JSON and what is made of it: a template is filled with its fields.
bool IsJsonShape(PrintOptions::Output output);

class Printer {
 public:
  Printer(const Environment* environment, PrintOptions options);

  // INVALID_ARGUMENT if a field asked for does not exist.
  absl::Status List(const ListView& view) const;
  absl::Status Show(const ShowView& view) const;

  // One item of a stream: a line of NDJSON, or a document of YAML, with the fields asked for that
  // it has. Only where IsStructured().
  absl::Status Item(absl::string_view schema, const Json& value) const;

  // True if the reader is a program: then nothing but data may go to stdout.
  bool IsStructured() const;
  // True if JSON is asked for, in any of its shapes.
  bool IsJson() const;
  const Style& style() const { return style_; }
  const PrintOptions& options() const { return options_; }
  // The field as the table shows it, without colour.
  std::string FormatField(const Json& value, Format format) const;

 private:
  void TableLines(const Json& items, const std::vector<Column>& columns,
                  absl::string_view indent) const;
  void FieldLines(const ShowView& view) const;
  absl::Status PrintJsonList(const ListView& view) const;
  absl::Status PrintJsonResource(const ShowView& view) const;
  absl::Status PrintDocument(const Json& document) const;
  absl::Status PrintNames(const Json& items) const;
  absl::Status PrintFilled(const Json& items, const std::vector<std::string>& known) const;
  void DelimitedLines(const Json& items, const std::vector<Column>& columns, bool is_csv) const;

  const Environment* const env_;
  const PrintOptions options_;
  const Style style_;
};

// What a state means to a person: "valid" is good, "lost" is bad.
Tone ToneOf(absl::string_view state);

// Columns that `text` takes on a terminal: its code points.
int DisplayWidth(absl::string_view text);

// `text` cut to `width` columns, the last of which says that it was cut.
std::string Truncate(absl::string_view text, int width, bool is_utf8);

// "12.3 GB": powers of 1000.
std::string FormatBytes(double bytes);

}  // namespace assay::cli

#endif  // CLI_TERMINAL_PRINT_H_
