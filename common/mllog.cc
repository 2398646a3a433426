#include "common/mllog.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/json_reader.h"

namespace assay {
namespace {

absl::string_view EventTypeName(MllogEventType type) {
  switch (type) {
    case MllogEventType::kIntervalStart:
      return "INTERVAL_START";
    case MllogEventType::kIntervalEnd:
      return "INTERVAL_END";
    case MllogEventType::kPointInTime:
      return "POINT_IN_TIME";
  }
  return "";
}

// File and line first, then the caller's fields; a caller's "file" replaces ours in its place.
JsonObject WholeMetadata(const MllogRecord& record) {
  JsonObject metadata = {{"file", record.file}, {"lineno", record.lineno}};
  for (const auto& field : record.metadata) {
    const auto same = std::find_if(metadata.begin(), metadata.end(),
                                   [&](const auto& other) { return other.first == field.first; });
    if (same == metadata.end()) {
      metadata.push_back(field);
    } else {
      same->second = field.second;
    }
  }
  return metadata;
}

// Python's str.isspace for the code points of latin-1.
bool IsLatin1Space(char c) {
  const auto byte = static_cast<uint8_t>(c);
  return (byte >= 0x09 && byte <= 0x0D) || (byte >= 0x1C && byte <= 0x20) || byte == 0x85 ||
         byte == 0xA0;
}

// Where the last token of `line` begins, or npos. Looks for the token's 'G', which a record has
// nowhere else as a rule, at the speed of memchr.
size_t FindLastToken(absl::string_view line) {
  constexpr size_t kRare = 7;
  static_assert(kMllogToken[kRare] == 'G');
  size_t found = absl::string_view::npos;
  for (size_t from = 0; from < line.size();) {
    const auto* hit =
        static_cast<const char*>(std::memchr(line.data() + from, 'G', line.size() - from));
    if (hit == nullptr) break;
    const auto at = static_cast<size_t>(hit - line.data());
    if (at >= kRare && absl::StartsWith(line.substr(at - kRare), kMllogToken)) found = at - kRare;
    from = at + 1;
  }
  return found;
}

MllogLine ParseError(const char* problem) {
  return {.outcome = MllogOutcome::kParseError, .problem = problem};
}

MllogLine Crash(const char* exception) {
  return {.outcome = MllogOutcome::kCrash, .problem = exception};
}

MllogLine JsonFailure(JsonError error) {
  switch (error) {
    case JsonError::kTooDeep:
      return Crash("RecursionError");
    case JsonError::kIntegerTooLong:
      return ParseError("an integer of more than 4300 digits");
    case JsonError::kSyntax:
    case JsonError::kNone:
      break;
  }
  return ParseError("not valid JSON");
}

// The members that a record must have, as JSON text; empty where absent.
struct Members {
  absl::string_view time, key, value, metadata;
};

// Remembers a member; a later one of the same name replaces it. `name` has its quotes.
void Remember(absl::string_view name, absl::string_view json, Members* members) {
  std::string decoded;
  name = name.substr(1, name.size() - 2);
  if (absl::StrContains(name, '\\')) {
    decoded = *BuildJson(absl::StrCat("\"", name, "\"")).AsString();
    name = decoded;
  }
  if (name == "time_ms") {
    members->time = json;
  } else if (name == "key") {
    members->key = json;
  } else if (name == "value") {
    members->value = json;
  } else if (name == "metadata") {
    members->metadata = json;
  }
}

absl::string_view Between(const char* begin, const char* end) {
  return absl::string_view(begin, static_cast<size_t>(end - begin));
}

// Checks `"name": value` and remembers it.
bool ReadMember(JsonScanner* scanner, Members* members) {
  scanner->SkipSpace();
  const char* name_begin = scanner->at();
  if (!scanner->SkipString()) return false;
  const absl::string_view name = Between(name_begin, scanner->at());
  scanner->SkipSpace();
  if (!scanner->Take(':')) return false;
  scanner->SkipSpace();
  const char* value_begin = scanner->at();
  if (!scanner->SkipValue()) return false;
  Remember(name, Between(value_begin, scanner->at()), members);
  scanner->SkipSpace();
  return true;
}

bool ReadObject(JsonScanner* scanner, Members* members) {
  if (!scanner->Enter()) return false;
  scanner->SkipSpace();
  if (!scanner->Take('}')) {
    do {
      if (!ReadMember(scanner, members)) return false;
    } while (scanner->Take(','));
    if (!scanner->Take('}')) return false;
  }
  scanner->SkipSpace();
  return scanner->AtEnd();
}

// What the reference tool does with a record that is no object.
MllogLine NotAnObject(absl::string_view json) {
  const JsonResult result = ParseJson(json);
  if (result.error != JsonError::kNone) return JsonFailure(result.error);
  return result.value.is_null() ? ParseError("the record is null") : Crash("TypeError");
}

// Converts time_ms as Python's float() does, into line->time_ms; false: `line` holds the failure.
bool ReadTime(absl::string_view json, MllogLine* line) {
  if (json.size() <= 18 && std::all_of(json.begin(), json.end(), absl::ascii_isdigit)) {
    int64_t time = 0;
    std::from_chars(json.data(), json.data() + json.size(), time);
    line->time_ms = static_cast<double>(time);
    return true;
  }
  const JsonValue value = BuildJson(json);
  if (value.AsString() != nullptr) {
    if (PythonFloat(*value.AsString(), &line->time_ms)) return true;
    *line = ParseError("time_ms is text that is no number");
    return false;
  }
  const std::optional<double> time = value.ToDouble();
  const bool is_big = std::holds_alternative<BigInteger>(value.variant());
  if (!time || (is_big && std::isinf(*time))) {
    *line = Crash(time ? "OverflowError" : "TypeError");
    return false;
  }
  line->time_ms = *time;
  return true;
}

// ------------------------------------------------------------------------------- Python's float

// The zeros of Unicode's decimal digits (category Nd, Unicode 14) beyond ASCII; the other nine
// digits of a script follow.
constexpr std::array<uint32_t, 65> kDigitZeros = {
    0x660,   0x6F0,   0x7C0,   0x966,   0x9E6,   0xA66,   0xAE6,   0xB66,   0xBE6,   0xC66,
    0xCE6,   0xD66,   0xDE6,   0xE50,   0xED0,   0xF20,   0x1040,  0x1090,  0x17E0,  0x1810,
    0x1946,  0x19D0,  0x1A80,  0x1A90,  0x1B50,  0x1BB0,  0x1C40,  0x1C50,  0xA620,  0xA8D0,
    0xA900,  0xA9D0,  0xA9F0,  0xAA50,  0xABF0,  0xFF10,  0x104A0, 0x10D30, 0x11066, 0x110F0,
    0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0, 0x11950,
    0x11C50, 0x11D50, 0x11DA0, 0x16A60, 0x16AC0, 0x16B50, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC,
    0x1D7F6, 0x1E140, 0x1E2F0, 0x1E950, 0x1FBF0};

bool IsUnicodeSpace(uint32_t code) {
  return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
         code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

// The ASCII character that float() takes `code` for; '?' if for none.
char ToAscii(uint32_t code) {
  if (code < 0x80) return static_cast<char>(code);
  if (IsUnicodeSpace(code)) return ' ';
  const auto* above = std::upper_bound(kDigitZeros.begin(), kDigitZeros.end(), code);
  if (above == kDigitZeros.begin() || code - *std::prev(above) > 9) return '?';
  return static_cast<char>('0' + (code - *std::prev(above)));
}

// `text` is well-formed UTF-8, surrogates included, as BuildJson makes it.
std::string DecimalAndSpaceToAscii(absl::string_view text) {
  std::string ascii;
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<uint8_t>(text[i++]);
    const int more = first < 0xC0 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
    uint32_t code = more == 0 ? first : first & (0x3Fu >> more);
    for (int j = 0; j < more && i < text.size(); ++j) {
      code = code << 6 | (static_cast<uint8_t>(text[i++]) & 0x3F);
    }
    ascii.push_back(ToAscii(code));
  }
  return ascii;
}

// Removes underscores, each of which must stand between two digits.
bool DropUnderscores(std::string* text) {
  const auto is_digit = [&](size_t i) {
    return i < text->size() && absl::ascii_isdigit(static_cast<unsigned char>((*text)[i]));
  };
  for (size_t i = 0; i < text->size(); ++i) {
    if ((*text)[i] == '_' && (i == 0 || !is_digit(i - 1) || !is_digit(i + 1))) return false;
  }
  text->erase(std::remove(text->begin(), text->end(), '_'), text->end());
  return true;
}

// [+-] digits [. digits] [e [+-] digits], with a digit before or behind the point.
bool IsDecimal(absl::string_view text) {
  const auto take_digits = [&] {
    size_t count = 0;
    while (count < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[count]))) {
      ++count;
    }
    text.remove_prefix(count);
    return count;
  };
  const auto take_one_of = [&](absl::string_view set) {
    if (text.empty() || !absl::StrContains(set, text[0])) return false;
    text.remove_prefix(1);
    return true;
  };
  take_one_of("+-");
  const size_t whole = take_digits();
  const size_t fraction = take_one_of(".") ? take_digits() : 0;
  if (whole + fraction == 0) return false;
  if (take_one_of("eE")) {
    take_one_of("+-");
    if (take_digits() == 0) return false;
  }
  return text.empty();
}

}  // namespace

std::string FormatMllog(const MllogRecord& record) {
  std::string line(kMllogToken);
  AppendJson(JsonObject{{"namespace", record.name_space},
                        {"time_ms", record.time_ms},
                        {"event_type", EventTypeName(record.event_type)},
                        {"key", record.key},
                        {"value", record.value},
                        {"metadata", WholeMetadata(record)}},
             &line);
  return line;
}

void MllogWriter::Write(const MllogRecord& record) {
  sink_(absl::StrCat(FormatMllog(record), "\n"));
}

void MllogWriter::Start(absl::string_view key, JsonValue value, JsonObject metadata,
                        const char* file, int lineno) {
  Write({.time_ms = clock_(),
         .event_type = MllogEventType::kIntervalStart,
         .key = std::string(key),
         .value = std::move(value),
         .file = file,
         .lineno = lineno,
         .metadata = std::move(metadata)});
}

void MllogWriter::End(absl::string_view key, JsonValue value, JsonObject metadata, const char* file,
                      int lineno) {
  Write({.time_ms = clock_(),
         .event_type = MllogEventType::kIntervalEnd,
         .key = std::string(key),
         .value = std::move(value),
         .file = file,
         .lineno = lineno,
         .metadata = std::move(metadata)});
}

void MllogWriter::Event(absl::string_view key, JsonValue value, JsonObject metadata,
                        const char* file, int lineno) {
  Write({.time_ms = clock_(),
         .event_type = MllogEventType::kPointInTime,
         .key = std::string(key),
         .value = std::move(value),
         .file = file,
         .lineno = lineno,
         .metadata = std::move(metadata)});
}

bool MllogLines::Next(absl::string_view* line) {
  if (rest_.empty()) return false;
  const auto* feed = static_cast<const char*>(std::memchr(rest_.data(), '\n', rest_.size()));
  size_t length = feed == nullptr ? rest_.size() : static_cast<size_t>(feed - rest_.data());
  size_t end_length = feed == nullptr ? 0 : 1;
  if (const void* hit = std::memchr(rest_.data(), '\r', length)) {
    length = static_cast<size_t>(static_cast<const char*>(hit) - rest_.data());
    end_length = length + 1 < rest_.size() && rest_[length + 1] == '\n' ? 2 : 1;
  }
  *line = rest_.substr(0, length);
  rest_.remove_prefix(length + end_length);
  ++line_number_;
  return true;
}

void MllogLineStream::Keep(absl::string_view part) {
  is_begun_ = true;
  if (!is_long_ && kept_.size() + part.size() <= kMllogLineBytesMax) {
    absl::StrAppend(&kept_, part);
    return;
  }
  // Only whether there is a token matters now; one may begin in what was kept.
  constexpr size_t kTail = kMllogToken.size() - 1;
  const absl::string_view begin = part.substr(0, kTail);
  is_long_ = true;
  has_token_ = has_token_ || absl::StrContains(absl::StrCat(kept_, begin), kMllogToken) ||
               absl::StrContains(part, kMllogToken);
  if (part.size() < kTail) {
    absl::StrAppend(&kept_, part);
    part = kept_;
  }
  kept_ = std::string(part.substr(part.size() - std::min(part.size(), kTail)));
}

void MllogLineStream::Finish(absl::string_view rest, Sink sink) {
  if (!is_begun_ && rest.size() <= kMllogLineBytesMax) {
    sink(rest, false);  // the usual case: nothing to copy
    return;
  }
  Keep(rest);
  sink(is_long_ ? absl::string_view() : absl::string_view(kept_), is_long_ && has_token_);
  kept_.clear();
  is_begun_ = is_long_ = has_token_ = false;
}

void MllogLineStream::Add(absl::string_view bytes, Sink sink) {
  if (skip_line_feed_ && !bytes.empty()) {
    skip_line_feed_ = false;
    absl::ConsumePrefix(&bytes, "\n");
  }
  // Few logs have any, so this is asked once.
  const bool has_carriage =
      !bytes.empty() && std::memchr(bytes.data(), '\r', bytes.size()) != nullptr;
  while (!bytes.empty()) {
    const auto* feed = static_cast<const char*>(std::memchr(bytes.data(), '\n', bytes.size()));
    const size_t until = feed == nullptr ? bytes.size() : static_cast<size_t>(feed - bytes.data());
    const auto* carriage =
        has_carriage ? static_cast<const char*>(std::memchr(bytes.data(), '\r', until)) : nullptr;
    if (feed == nullptr && carriage == nullptr) return Keep(bytes);
    const size_t length =
        carriage == nullptr ? until : static_cast<size_t>(carriage - bytes.data());
    Finish(bytes.substr(0, length), sink);
    bytes.remove_prefix(length + 1);
    if (carriage == nullptr) continue;
    skip_line_feed_ = bytes.empty();
    absl::ConsumePrefix(&bytes, "\n");
  }
}

void MllogLineStream::End(Sink sink) {
  skip_line_feed_ = false;
  if (is_begun_) Finish("", sink);
}

MllogLine ReadMllogLine(absl::string_view line) {
  const size_t token = FindLastToken(line);
  if (token == absl::string_view::npos) return {};
  line.remove_prefix(token);
  while (!line.empty() && IsLatin1Space(line.back()))
    line.remove_suffix(1);
  // The token's own space may have been stripped; then the reference no longer knows the token.
  if (line.size() < kMllogToken.size()) return ParseError("nothing after the token");
  JsonScanner scanner(line.substr(kMllogToken.size()));
  scanner.SkipSpace();
  if (!scanner.StartsWith('{')) return NotAnObject(line.substr(kMllogToken.size()));

  Members members;
  if (!ReadObject(&scanner, &members)) return JsonFailure(scanner.error());
  // In the order in which the reference tool looks at them: the first failure counts.
  MllogLine result{.outcome = MllogOutcome::kRecord};
  if (members.time.empty()) return Crash("KeyError");
  if (!ReadTime(members.time, &result)) return result;
  if (members.key.empty() || members.value.empty() || members.metadata.empty()) {
    return Crash("KeyError");
  }
  result.key_json = members.key;
  result.value_json = members.value;
  result.metadata_json = members.metadata;
  return result;
}

absl::string_view MllogKey(const MllogLine& line, std::string* storage) {
  if (!absl::StartsWith(line.key_json, "\"")) return {};
  const absl::string_view text = line.key_json.substr(1, line.key_json.size() - 2);
  const bool is_plain = std::all_of(
      text.begin(), text.end(), [](char c) { return c != '\\' && static_cast<uint8_t>(c) < 0x80; });
  if (is_plain) return text;
  *storage = *BuildJson(line.key_json).AsString();
  return *storage;
}

bool PythonFloat(absl::string_view text, double* value) {
  std::string number = DecimalAndSpaceToAscii(text);
  const absl::string_view stripped = absl::StripAsciiWhitespace(number);
  number = std::string(stripped);
  if (!DropUnderscores(&number)) return false;
  if (IsDecimal(number)) return absl::SimpleAtod(number, value);

  std::string word = absl::AsciiStrToLower(number);
  const bool is_negative = absl::StartsWith(word, "-");
  if (is_negative || absl::StartsWith(word, "+")) word.erase(0, 1);
  if (word == "nan") {
    *value = std::numeric_limits<double>::quiet_NaN();
  } else if (word == "inf" || word == "infinity") {
    *value = std::numeric_limits<double>::infinity();
  } else {
    return false;
  }
  if (is_negative) *value = -*value;
  return true;
}

}  // namespace assay
