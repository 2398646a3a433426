// The only way to the user's terminal. Names, reasons, log lines and messages come from others and
// may hold anything: escape sequences that repaint the screen or write to the clipboard, signs that
// turn text around. This stream shows such things as \x1b instead of passing them on.
//
// Our own styling passes through the same text, marked with a key that is drawn for each invocation
// and that no data can know.

#ifndef CLI_TERMINAL_SAFE_STREAM_H_
#define CLI_TERMINAL_SAFE_STREAM_H_

#include <ostream>
#include <streambuf>
#include <string>

#include "absl/strings/string_view.h"

namespace assay::cli {

enum class Tone { kPlain, kGood, kWarn, kBad, kFaint, kStrong };

// What begins a stretch of text in `tone`, or with kPlain ends one, on a SafeStream with this key.
std::string StyleMark(absl::string_view key, Tone tone);

// Passes text on to `target`, which must outlive it, at once. Line ends and tabs pass; everything
// else that IsUnprintable, and every byte that is no UTF-8, is escaped as Printable does. With an
// empty key no styling passes. Not thread-safe.
class SafeStream : public std::ostream {
 public:
  SafeStream(std::ostream* target, std::string key);
  // Shows what is left of a code point that never became whole.
  ~SafeStream() override;
  SafeStream(const SafeStream&) = delete;
  SafeStream& operator=(const SafeStream&) = delete;

 private:
  class Buffer : public std::streambuf {
   public:
    Buffer(std::ostream* target, const std::string& key);

   protected:
    int_type overflow(int_type c) override;
    std::streamsize xsputn(const char* text, std::streamsize size) override;
    int sync() override;

   private:
    void Take(absl::string_view text);
    size_t PassOne(absl::string_view text);
    size_t PassMark(absl::string_view text);

    std::ostream* const target_;
    const std::string mark_;  // what comes before the letter of a tone; empty: no styling
    std::string kept_;        // the beginning of a code point or mark whose end has not come
  };

  Buffer buffer_;
};

}  // namespace assay::cli

#endif  // CLI_TERMINAL_SAFE_STREAM_H_
