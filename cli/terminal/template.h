// Text with the fields of JSON objects in it: '{id} took {seconds} s'.

#ifndef CLI_TERMINAL_TEMPLATE_H_
#define CLI_TERMINAL_TEMPLATE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/client/json.h"

namespace assay::cli {

// The member of an object; "a.b" is the member b of its member a. Null if there is none, or it is
// null.
const client::Json* Member(const client::Json& object, const std::string& field);

// {field} stands for the member, {a.b} for a member's member, {{ and }} for braces, \n and \t for a
// line end and a tab. A member that an object lacks is empty text.
class Template {
 public:
  // INVALID_ARGUMENT, with the place, for a brace that is not closed or not opened, and for an
  // empty field.
  static absl::StatusOr<Template> Parse(absl::string_view text);

  std::vector<std::string> Fields() const;
  std::string Fill(const client::Json& object) const;

 private:
  struct Piece {
    bool is_field = false;
    std::string text;
  };
  std::vector<Piece> pieces_;
};

}  // namespace assay::cli

#endif  // CLI_TERMINAL_TEMPLATE_H_
