#include "common/toml.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace assay {
namespace {

// Walks over TOML without building anything. It knows strings and comments exactly, and of all else
// only the characters that make names and nesting; what is no TOML is left to the parser.
class TomlWalk {
 public:
  explicit TomlWalk(absl::string_view text) : text_(text) {}

  std::optional<TomlProblem> Run() {
    while (at_ < text_.size() && !problem_.has_value())
      Step();
    return std::move(problem_);
  }

 private:
  void Step() {
    const char c = text_[at_];
    switch (c) {
      case '#':
        at_ = std::min(text_.find('\n', at_), text_.size());
        return;
      case '"':
      case '\'':
        return SkipString(c);
      case '\n':
        EndLine();
        break;
      case '.':
        AddPart();
        break;
      case '=':
        AddNames();
        is_value_ = true;
        break;
      case ',':
        part_count_ = 1;
        is_value_ = !IsInTable();
        break;
      case '[':
      case '{':
        Open(c);
        break;
      case ']':
      case '}':
        Close();
        break;
      default:
        break;
    }
    ++at_;
  }

  // Up to the closing quotes. A string on one line ends with the line, closed or not.
  void SkipString(char quote) {
    const std::string triple(3, quote);
    const bool is_long = absl::StartsWith(text_.substr(at_), triple);
    at_ += is_long ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\\' && quote == '"') {
        CountLine(at_ + 1);
        at_ = std::min(at_ + 2, text_.size());
      } else if (is_long ? absl::StartsWith(text_.substr(at_), triple) : c == quote) {
        at_ += is_long ? 3 : 1;
        // Up to two quotes before the closing ones belong to the string.
        for (int i = 0; is_long && i < 2 && at_ < text_.size() && text_[at_] == quote; ++i)
          ++at_;
        return;
      } else if (!is_long && c == '\n') {
        return;
      } else {
        CountLine(at_);
        ++at_;
      }
    }
  }

  void CountLine(size_t at) {
    if (at >= text_.size() || text_[at] != '\n') return;
    ++line_;
    line_begin_ = at + 1;
  }

  void EndLine() {
    CountLine(at_);
    // A header that nobody closed is the parser's to name.
    if (is_header_) open_.clear();
    is_header_ = false;
    part_count_ = 1;
    if (open_.empty()) is_value_ = false;
  }

  void Open(char c) {
    // A bracket outside of any value begins a header.
    if (c == '[' && open_.empty() && !is_value_) {
      is_header_ = true;
      AddNames();
    }
    part_count_ = 1;
    open_.push_back(c);
    is_value_ = !is_header_ && !IsInTable();
    if (open_.size() > static_cast<size_t>(kTomlDepthMax))
      Fail(absl::StrCat("more than ", kTomlDepthMax, " lists and tables within each other"));
  }

  void Close() {
    if (!open_.empty()) open_.pop_back();
    is_value_ = !is_header_;
  }

  bool IsInTable() const { return !open_.empty() && open_.back() == '{'; }

  // A point in a name; one in a number counts for nothing.
  void AddPart() {
    if (is_value_) return;
    if (++part_count_ > kTomlNamePartsMax)
      return Fail(absl::StrCat("a name of more than ", kTomlNamePartsMax, " parts"));
    AddNames();
  }

  void AddNames() {
    if (++name_count_ > kTomlNamesMax)
      Fail(absl::StrCat("more than ", kTomlNamesMax, " names in one file"));
  }

  void Fail(std::string message) {
    if (problem_.has_value()) return;
    problem_ = TomlProblem{line_, static_cast<int>(at_ - line_begin_) + 1, std::move(message)};
  }

  const absl::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  size_t line_begin_ = 0;
  std::string open_;    // brackets
  int part_count_ = 1;  // of the name at hand
  int name_count_ = 0;
  bool is_header_ = false;
  bool is_value_ = false;  // behind '=': what follows is no name
  std::optional<TomlProblem> problem_;
};

}  // namespace

absl::Status ToStatus(const TomlProblem& problem, absl::string_view source) {
  return absl::InvalidArgumentError(
      absl::StrCat(source, ":", problem.line, ":", problem.column, ": ", problem.message));
}

std::optional<TomlProblem> FindTomlExcess(absl::string_view text) {
  if (text.size() > static_cast<size_t>(kTomlBytesMax))
    return TomlProblem{.message = absl::StrCat(text.size(), " bytes; at most ", kTomlBytesMax,
                                               " are read as TOML")};
  return TomlWalk(text).Run();
}

ParsedToml ParseToml(absl::string_view text) {
  ParsedToml parsed;
  parsed.problem = FindTomlExcess(text);
  if (parsed.problem.has_value()) return parsed;
  try {
    parsed.table = toml::parse(std::string_view(text.data(), text.size()));
  } catch (const toml::parse_error& error) {
    const toml::source_position& at = error.source().begin;
    parsed.problem = TomlProblem{static_cast<int>(at.line), static_cast<int>(at.column),
                                 std::string(error.description())};
  }
  return parsed;
}

}  // namespace assay
