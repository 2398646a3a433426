// A message as JSON, by its own description: a field is shown under its own name and by its type,
// and rows say what differs.
//   - Absent: text that is empty, a number that is 0, false, an enum's first value, an `optional`
//     field or a message that is not set, a time of 0, a repeated field or a map without elements.
//   - A Timestamp is text (TimeText), an enum's value its name in lower case, another message an
//     object, a map an object with its keys sorted.
// Members are in the order of the rows. What no row mentions comes after them; rows that reach into
// a message ("spec.system") make its other fields members, too. Where a row has taken its name,
// such a field is shown with its type's: "Worker.version".

#ifndef COMMON_CLIENT_MESSAGE_JSON_H_
#define COMMON_CLIENT_MESSAGE_JSON_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/timestamp.pb.h"

#include "common/client/json.h"

namespace assay::client {

// What JsonRow::flags may hold.
inline constexpr unsigned kAlways = 1;    // also where the general rules leave it out
inline constexpr unsigned kId = 2;        // a resource's name as people write it: r-7 for runs/r-7
inline constexpr unsigned kJsonText = 4;  // text that is JSON as JSON (JsonOrText)
inline constexpr unsigned kHidden = 8;    // not shown, with all that it holds

// As the path of a hidden row: all fields that no other row mentions.
inline constexpr char kRest[] = "*";

// How a field is shown; or several, each under its own name, with blanks between their paths.
struct JsonRow {
  std::string path = "";    // "spec.trainer.backend"
  std::string member = "";  // its name in JSON; "": the field's own
  unsigned flags = 0;
  std::string with = "";  // path of another field: where that one is absent, so is this one
  std::function<Json(const google::protobuf::Message&)> derive = nullptr;
};

// A member that `derive` makes of a whole T in place of the field at `path`, which may be "";
// discarded JSON leaves it out. With member "" it makes an object whose members are the message's,
// but for names that are there before it.
template <class T>
JsonRow Derived(const char* path, const char* member, Json (*derive)(const T&)) {
  return {path, member, 0, "", [derive](const google::protobuf::Message& message) {
            return derive(static_cast<const T&>(message));
          }};
}

using JsonTables = std::map<const google::protobuf::Descriptor*, std::vector<JsonRow>>;

// With a row for each path.
std::vector<JsonRow> OnePathEach(const std::vector<JsonRow>& rows);

using FieldPath = std::vector<const google::protobuf::FieldDescriptor*>;

// The fields that `path` names, from `type` down; empty if there is none. Only the last one may be
// repeated.
FieldPath ResolvePath(const google::protobuf::Descriptor& type, absl::string_view path);

// Shows messages. Constant once constructed.
class MessageJson {
 public:
  // A row whose path names no field is left out.
  explicit MessageJson(const JsonTables& tables);

  // An object, in which other messages are shown by their own tables. `message` is of a type that
  // has one, or that a field of such a type has.
  Json Show(const google::protobuf::Message& message) const;

 private:
  // A row, resolved.
  struct Member {
    JsonRow row;
    std::string name;
    FieldPath path;
    FieldPath with;
  };

  void Add(const google::protobuf::Descriptor& type, const JsonTables& tables);
  Json ShowField(const google::protobuf::Message& message, const Member& member) const;
  // Element `index` of a repeated field; the field's one value with a negative one.
  Json ShowValue(const google::protobuf::Message& holder,
                 const google::protobuf::FieldDescriptor* field, int index,
                 const JsonRow& row) const;

  std::map<const google::protobuf::Descriptor*, std::vector<Member>> members_;
};

// The JSON that `text` is; what is none as the text.
Json JsonOrText(const std::string& text);

// "valid", "running": lower case, or "unknown" for a value that says nothing or is newer than this
// program.
std::string EnumText(const google::protobuf::EnumDescriptor& type, int value);

// RFC 3339 in UTC with at most microseconds; empty for a time of 0.
std::string TimeText(const google::protobuf::Timestamp& time);

}  // namespace assay::client

#endif  // COMMON_CLIENT_MESSAGE_JSON_H_
