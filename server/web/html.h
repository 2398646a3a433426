// HTML text. What others have written comes in through Text and Attribute alone, which escape it;
// markup comes from literals of this program, which the compiler makes sure of.

#ifndef SERVER_WEB_HTML_H_
#define SERVER_WEB_HTML_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace assay::web {

// Markup of ours. Only a literal makes one, so that no text of others is taken for it by mistake.
class Markup {
 public:
  template <size_t size>
  consteval Markup(const char (&literal)[size])  // NOLINT(google-explicit-constructor)
      : data_(literal), size_(size - 1) {}

  absl::string_view text() const { return {data_, size_}; }

 private:
  const char* data_;
  size_t size_;
};

class Html {
 public:
  Html() = default;
  // Markup of ours, as it is.
  Html& Raw(Markup markup) {
    const absl::string_view text = markup.text();
    out_.append(text.data(), text.size());
    return *this;
  }
  // Anybody's text, within an element or an attribute in quotation marks: the only function that
  // escapes. What a browser would obey or a reader not see (control characters, marks that turn the
  // direction of text, bytes that are no UTF-8) is shown as \x1b or \u202e.
  Html& Text(absl::string_view text);
  // ` name="value"`, escaped.
  Html& Attribute(Markup name, absl::string_view value) {
    return Raw(" ").Raw(name).Raw("=\"").Text(value).Raw("\"");
  }
  // `<a href="path">text</a>`. Only paths of this site become links.
  Html& Link(absl::string_view path, absl::string_view text);
  // What is markup already.
  Html& Add(const Html& part) {
    out_ += part.out_;
    return *this;
  }
  // A number of a drawing, with at most two decimals.
  Html& Coordinate(double value);

  bool empty() const { return out_.empty(); }
  size_t size() const { return out_.size(); }
  const std::string& text() const { return out_; }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

}  // namespace assay::web

#endif  // SERVER_WEB_HTML_H_
