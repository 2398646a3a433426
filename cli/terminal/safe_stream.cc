#include "cli/terminal/safe_stream.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/printable.h"

namespace assay::cli {
namespace {

constexpr char kMarkByte = '\xFF';  // in no UTF-8

// Select graphic rendition, ECMA-48.
struct ToneCode {
  char letter;
  absl::string_view sequence;
};

ToneCode CodeOf(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return {'p', "\033[0m"};
    case Tone::kGood:
      return {'g', "\033[32m"};
    case Tone::kWarn:
      return {'w', "\033[33m"};
    case Tone::kBad:
      return {'b', "\033[31m"};
    case Tone::kFaint:
      return {'f', "\033[2m"};
    case Tone::kStrong:
      return {'s', "\033[1m"};
  }
  return {'p', "\033[0m"};
}

absl::string_view SequenceOf(char letter) {
  for (const Tone tone :
       {Tone::kPlain, Tone::kGood, Tone::kWarn, Tone::kBad, Tone::kFaint, Tone::kStrong})
    if (CodeOf(tone).letter == letter) return CodeOf(tone).sequence;
  return "";
}

bool IsPlainAscii(char c) {
  return (c >= ' ' && c < 0x7F) || c == '\n' || c == '\t';
}

}  // namespace

std::string StyleMark(absl::string_view key, Tone tone) {
  return absl::StrCat(std::string(1, kMarkByte), key, std::string(1, CodeOf(tone).letter));
}

SafeStream::SafeStream(std::ostream* target, std::string key)
    : std::ostream(nullptr), buffer_(target, key) {
  rdbuf(&buffer_);
}

SafeStream::~SafeStream() {
  flush();
}

SafeStream::Buffer::Buffer(std::ostream* target, const std::string& key)
    : target_(target), mark_(key.empty() ? "" : std::string(1, kMarkByte) + key) {}

std::streambuf::int_type SafeStream::Buffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char byte = traits_type::to_char_type(c);
  Take(absl::string_view(&byte, 1));
  return target_->good() ? c : traits_type::eof();
}

std::streamsize SafeStream::Buffer::xsputn(const char* text, std::streamsize size) {
  Take(absl::string_view(text, static_cast<size_t>(size)));
  return target_->good() ? size : 0;
}

int SafeStream::Buffer::sync() {
  for (const char byte : kept_)
    *target_ << EscapeByte(byte);
  kept_.clear();
  target_->flush();
  return target_->good() ? 0 : -1;
}

void SafeStream::Buffer::Take(absl::string_view text) {
  std::string joined;
  if (!kept_.empty()) {
    joined = absl::StrCat(kept_, text);
    kept_.clear();
    text = joined;
  }
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && IsPlainAscii(text[plain]))
      ++plain;
    target_->write(text.data(), static_cast<std::streamsize>(plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    const size_t passed = PassOne(text);
    if (passed == 0) {
      kept_ = std::string(text);
      return;
    }
    text.remove_prefix(passed);
  }
}

// Passes one code point or mark on, and returns its size; 0: its end has not come yet.
size_t SafeStream::Buffer::PassOne(absl::string_view text) {
  if (!mark_.empty() && text[0] == kMarkByte) return PassMark(text);
  const CodePoint first = DecodeUtf8(text);
  if (first.size == 0) return 0;
  if (first.value < 0) {
    *target_ << EscapeByte(text[0]);
  } else if (IsUnprintable(first.value)) {
    *target_ << EscapeCodePoint(first.value);
  } else {
    target_->write(text.data(), static_cast<std::streamsize>(first.size));
  }
  return first.size;
}

size_t SafeStream::Buffer::PassMark(absl::string_view text) {
  if (text.size() <= mark_.size() && absl::StartsWith(mark_, text)) return 0;
  const absl::string_view sequence =
      absl::StartsWith(text, mark_) ? SequenceOf(text[mark_.size()]) : "";
  if (sequence.empty()) {
    *target_ << EscapeByte(text[0]);
    return 1;
  }
  *target_ << sequence;
  return mark_.size() + 1;
}

}  // namespace assay::cli
