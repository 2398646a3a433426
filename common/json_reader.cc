#include "common/json_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace assay {
namespace {

// True for the bytes that a string may hold without looking closer: not '"', '\\' or below 0x20.
constexpr std::array<bool, 256> PlainBytes() {
  std::array<bool, 256> plain{};
  for (size_t i = 0; i < plain.size(); ++i)
    plain[i] = i >= 0x20 && i != '"' && i != '\\';
  return plain;
}
constexpr std::array<bool, 256> kPlain = PlainBytes();

bool IsPlain(char c) {
  return kPlain[static_cast<uint8_t>(c)];
}

// How many of the eight bytes at `p` are plain before one that is not. Of the three marks only the
// lowest is exact, which is the one that counts.
int PlainPrefix(const char* p) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHighs = kOnes << 7;
  uint64_t word = 0;
  std::memcpy(&word, p, sizeof(word));
  const auto zero_bytes = [](uint64_t x) { return (x - kOnes) & ~x; };
  const uint64_t stops = (zero_bytes(word ^ kOnes * '"') | zero_bytes(word ^ kOnes * '\\') |
                          ((word - kOnes * 0x20) & ~word)) &
                         kHighs;
  return std::countr_zero(stops) / 8;
}
static_assert(std::endian::native == std::endian::little,
              "PlainPrefix reads the lowest byte first");

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsNumberByte(char c) {
  return IsDigit(c) || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

// The four hexadecimal digits at `p`, which a scanner has checked.
uint32_t Hex4(const char* p) {
  uint32_t code = 0;
  std::from_chars(p, p + 4, code, 16);
  return code;
}

void AppendUtf8(uint32_t code, std::string* out) {
  const auto put = [&](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

char Unescape(char c) {
  switch (c) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return c;  // '"', '\\', '/'
  }
}

// Builds values from text that a scanner has accepted, so nothing here can go wrong.
class Builder {
 public:
  explicit Builder(absl::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  JsonValue Value() {
    SkipSpace();
    switch (*at_) {
      case '{':
        return Object();
      case '[':
        return List();
      case '"':
        return String();
      case 't':
        return Word(4, true);
      case 'f':
        return Word(5, false);
      case 'n':
        return Word(4, JsonValue());
      case 'N':
        return Word(3, std::numeric_limits<double>::quiet_NaN());
      case 'I':
        return Word(8, std::numeric_limits<double>::infinity());
      default:
        return NumberOrInfinity();
    }
  }

 private:
  // Positions of the members from kIndexedFrom on.
  using MemberIndex = absl::flat_hash_map<std::string, size_t>;
  static constexpr size_t kIndexedFrom = 16;

  void SkipSpace() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r'))
      ++at_;
  }

  JsonValue Word(size_t length, JsonValue value) {
    at_ += length;
    return value;
  }

  JsonValue Object() {
    JsonObject members;
    MemberIndex index;
    ++at_;
    SkipSpace();
    while (*at_ != '}') {
      std::string name = String();
      SkipSpace();
      ++at_;  // ':'
      JsonValue value = Value();
      Put(std::move(name), std::move(value), &members, &index);
      NextElement();
    }
    ++at_;
    return members;
  }

  // A duplicate keeps its first place and takes the last value. Large objects get an index, so
  // that a hostile line costs no more than its length.
  static void Put(std::string name, JsonValue value, JsonObject* members, MemberIndex* index) {
    const size_t position = Position(name, *members, index);
    if (position < members->size()) {
      (*members)[position].second = std::move(value);
      return;
    }
    if (members->size() >= kIndexedFrom) (*index)[name] = position;
    members->emplace_back(std::move(name), std::move(value));
  }

  // Where `name` is, or the number of members.
  static size_t Position(const std::string& name, const JsonObject& members, MemberIndex* index) {
    const size_t searched = std::min(members.size(), kIndexedFrom);
    for (size_t i = 0; i < searched; ++i) {
      if (members[i].first == name) return i;
    }
    if (searched == members.size()) return searched;
    const auto found = index->find(name);
    return found == index->end() ? members.size() : found->second;
  }

  JsonValue List() {
    JsonList elements;
    ++at_;
    SkipSpace();
    while (*at_ != ']') {
      elements.push_back(Value());
      NextElement();
    }
    ++at_;
    return elements;
  }

  // Moves to the next element or to the closing bracket.
  void NextElement() {
    SkipSpace();
    if (*at_ == ',') ++at_;
    SkipSpace();
  }

  std::string String() {
    std::string text;
    for (++at_; *at_ != '"';) {
      const char* begin = at_;
      while (IsPlain(*at_) && static_cast<uint8_t>(*at_) < 0x80)
        ++at_;
      text.append(begin, at_);
      if (*at_ == '\\') {
        Escape(&text);
      } else if (*at_ != '"') {
        AppendUtf8(static_cast<uint8_t>(*at_++), &text);
      }
    }
    ++at_;
    return text;
  }

  void Escape(std::string* text) {
    const char kind = at_[1];
    at_ += 2;
    if (kind != 'u') {
      text->push_back(Unescape(kind));
      return;
    }
    uint32_t code = Hex4(at_);
    at_ += 4;
    const bool is_high = code >= 0xD800 && code < 0xDC00;
    if (is_high && end_ - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u') {
      const uint32_t low = Hex4(at_ + 2);
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10 | (low - 0xDC00));
        at_ += 6;
      }
    }
    AppendUtf8(code, text);
  }

  JsonValue NumberOrInfinity() {
    if (at_[0] == '-' && at_ + 1 != end_ && at_[1] == 'I') {
      return Word(9, -std::numeric_limits<double>::infinity());
    }
    const char* begin = at_;
    bool is_float = false;
    for (; at_ != end_ && IsNumberByte(*at_); ++at_)
      is_float |= !IsDigit(*at_) && *at_ != '-';
    const absl::string_view digits(begin, static_cast<size_t>(at_ - begin));
    return is_float ? Float(digits) : Integer(digits);
  }

  static JsonValue Float(absl::string_view digits) {
    double value = 0;
    (void)absl::SimpleAtod(digits, &value);  // infinite on overflow, as in Python
    return value;
  }

  static JsonValue Integer(absl::string_view digits) {
    int64_t value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (result.ec == std::errc()) return value;
    return BigInteger{std::string(digits)};
  }

  const char* at_;
  const char* end_;
};

}  // namespace

void JsonScanner::SkipSpace() {
  while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r'))
    ++at_;
}

bool JsonScanner::Take(char c) {
  if (!StartsWith(c)) return false;
  ++at_;
  return true;
}

bool JsonScanner::Fail(JsonError error) {
  error_ = error;
  return false;
}

bool JsonScanner::Enter() {
  ++at_;
  return ++depth_ <= kJsonDepthMax || Fail(JsonError::kTooDeep);
}

void JsonScanner::SkipPlain() {
  while (end_ - at_ >= 8) {
    const int plain = PlainPrefix(at_);
    at_ += plain;
    if (plain < 8) return;
  }
  while (at_ != end_ && IsPlain(*at_))
    ++at_;
}

bool JsonScanner::SkipString() {
  if (!Take('"')) return Fail(JsonError::kSyntax);
  while (true) {
    SkipPlain();
    if (at_ == end_) return Fail(JsonError::kSyntax);
    if (Take('"')) return true;
    if (*at_ != '\\') return Fail(JsonError::kSyntax);  // a control character
    if (!SkipEscape()) return false;
  }
}

bool JsonScanner::SkipEscape() {
  if (end_ - at_ < 2) return Fail(JsonError::kSyntax);
  const char kind = at_[1];
  at_ += 2;
  if (kind != 'u') {
    return absl::StrContains("\"\\/bfnrt", kind) || Fail(JsonError::kSyntax);
  }
  if (end_ - at_ < 4) return Fail(JsonError::kSyntax);
  for (int i = 0; i < 4; ++i) {
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(*at_++))) return Fail(JsonError::kSyntax);
  }
  return true;
}

bool JsonScanner::SkipWord() {
  const absl::string_view rest(at_, static_cast<size_t>(end_ - at_));
  for (const absl::string_view word : {"null", "true", "false", "NaN", "Infinity", "-Infinity"}) {
    if (absl::StartsWith(rest, word)) {
      at_ += word.size();
      return true;
    }
  }
  return Fail(JsonError::kSyntax);
}

bool JsonScanner::SkipNumber() {
  const char* begin = at_;
  if (Take('-') && StartsWith('I')) {
    at_ = begin;
    return SkipWord();
  }
  const char* digits = at_;
  while (at_ != end_ && IsDigit(*at_))
    ++at_;
  const auto digit_count = at_ - digits;
  if (digit_count == 0 || (*digits == '0' && digit_count > 1)) return Fail(JsonError::kSyntax);
  bool is_float = false;
  if (Take('.')) {
    is_float = true;
    if (at_ == end_ || !IsDigit(*at_)) return Fail(JsonError::kSyntax);
    while (at_ != end_ && IsDigit(*at_))
      ++at_;
  }
  if (Take('e') || Take('E')) {
    is_float = true;
    if (!Take('+')) Take('-');
    if (at_ == end_ || !IsDigit(*at_)) return Fail(JsonError::kSyntax);
    while (at_ != end_ && IsDigit(*at_))
      ++at_;
  }
  if (!is_float && digit_count > kJsonIntegerDigitsMax) return Fail(JsonError::kIntegerTooLong);
  return true;
}

bool JsonScanner::SkipList() {
  if (!Enter()) return false;
  SkipSpace();
  if (!Take(']')) {
    do {
      SkipSpace();
      if (!SkipValue()) return false;
      SkipSpace();
    } while (Take(','));
    if (!Take(']')) return Fail(JsonError::kSyntax);
  }
  Leave();
  return true;
}

bool JsonScanner::SkipObject() {
  if (!Enter()) return false;
  SkipSpace();
  if (!Take('}')) {
    do {
      SkipSpace();
      if (!SkipString()) return false;
      SkipSpace();
      if (!Take(':')) return Fail(JsonError::kSyntax);
      SkipSpace();
      if (!SkipValue()) return false;
      SkipSpace();
    } while (Take(','));
    if (!Take('}')) return Fail(JsonError::kSyntax);
  }
  Leave();
  return true;
}

// Recursion is bounded by kJsonDepthMax.
bool JsonScanner::SkipValue() {
  if (at_ == end_) return Fail(JsonError::kSyntax);
  switch (*at_) {
    case '"':
      return SkipString();
    case '{':
      return SkipObject();
    case '[':
      return SkipList();
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
      return SkipNumber();
    default:
      return SkipWord();
  }
}

JsonValue BuildJson(absl::string_view text) {
  return Builder(text).Value();
}

JsonResult ParseJson(absl::string_view text) {
  JsonScanner scanner(text);
  scanner.SkipSpace();
  const char* begin = scanner.at();
  if (!scanner.SkipValue()) return {.error = scanner.error()};
  scanner.SkipSpace();
  if (!scanner.AtEnd()) return {.error = JsonError::kSyntax};
  return {.value = BuildJson(absl::string_view(begin, static_cast<size_t>(scanner.at() - begin)))};
}

}  // namespace assay
