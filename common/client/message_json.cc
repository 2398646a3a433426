#include "common/client/message_json.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"

#include "common/client/ids.h"
#include "common/json_document.h"

namespace assay::client {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

bool IsTime(const FieldDescriptor* field) {
  return field->message_type() != nullptr &&
         field->message_type()->well_known_type() == Descriptor::WELLKNOWNTYPE_TIMESTAMP;
}

// By its description, too: of a type that is known at run time only, no class stands for it.
google::protobuf::Timestamp TimeOf(const Message& time) {
  const Reflection& reflection = *time.GetReflection();
  const Descriptor& type = *time.GetDescriptor();
  google::protobuf::Timestamp copy;
  copy.set_seconds(reflection.GetInt64(time, type.FindFieldByNumber(1)));
  copy.set_nanos(reflection.GetInt32(time, type.FindFieldByNumber(2)));
  return copy;
}

Json TextJson(const std::string& text, const JsonRow& row) {
  if ((row.flags & kId) != 0) return ShortId(text);
  if ((row.flags & kJsonText) == 0) return text;
  return JsonOrText(text);
}

// The message with the last field of `path`: the default one where it is not set.
const Message& HolderOf(const Message& message, const FieldPath& path) {
  const Message* holder = &message;
  for (size_t i = 0; i + 1 < path.size(); ++i)
    holder = &holder->GetReflection()->GetMessage(*holder, path[i]);
  return *holder;
}

bool IsThere(const Message& message, const FieldPath& path) {
  const Message& holder = HolderOf(message, path);
  const Reflection& reflection = *holder.GetReflection();
  const FieldDescriptor* field = path.back();
  if (field->is_repeated()) return reflection.FieldSize(holder, field) > 0;
  if (!reflection.HasField(holder, field)) return false;
  if (!IsTime(field)) return true;
  const google::protobuf::Timestamp time = TimeOf(reflection.GetMessage(holder, field));
  return time.seconds() != 0 || time.nanos() != 0;
}

std::string MemberName(const JsonRow& row) {
  if (!row.member.empty() || row.derive) return row.member;
  return row.path.substr(row.path.rfind('.') + 1);
}

// Rows for the fields of `type` that have none. `prefix` is where it lies: "" or "spec.".
void AppendRest(const Descriptor& type, const std::string& prefix, std::vector<JsonRow>* rows) {
  const auto has = [rows](const auto& is_it) {
    return std::any_of(rows->begin(), rows->end(), is_it);
  };
  if (has([](const JsonRow& row) { return row.path == kRest; })) return;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    const std::string path = absl::StrCat(prefix, field->name());
    if (has([&](const JsonRow& row) { return row.path == path; })) continue;
    const std::string below = absl::StrCat(path, ".");
    const bool is_flat = field->message_type() != nullptr &&
                         has([&](const JsonRow& row) { return absl::StartsWith(row.path, below); });
    if (is_flat) {
      AppendRest(*field->message_type(), below, rows);
    } else {
      const bool is_taken =
          has([&](const JsonRow& row) { return MemberName(row) == field->name(); });
      rows->push_back({path, is_taken ? absl::StrCat(type.name(), ".", field->name()) : ""});
    }
  }
}

}  // namespace

std::vector<JsonRow> OnePathEach(const std::vector<JsonRow>& rows) {
  std::vector<JsonRow> each;
  for (const JsonRow& row : rows)
    for (const absl::string_view path : absl::StrSplit(row.path, ' ')) {
      each.push_back(row);
      each.back().path = std::string(path);
    }
  return each;
}

Json JsonOrText(const std::string& text) {
  Json value = ParseJsonDocument<Json>(text);
  if (value.is_discarded()) return text;
  return value;
}

FieldPath ResolvePath(const Descriptor& type, absl::string_view path) {
  FieldPath fields;
  const Descriptor* holder = &type;
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    if (holder == nullptr) return {};
    const FieldDescriptor* field = holder->FindFieldByName(std::string(name));
    if (field == nullptr) return {};
    fields.push_back(field);
    holder = field->is_repeated() ? nullptr : field->message_type();
  }
  return fields;
}

MessageJson::MessageJson(const JsonTables& tables) {
  for (const auto& [type, rows] : tables)
    Add(*type, tables);
}

void MessageJson::Add(const Descriptor& type, const JsonTables& tables) {
  const auto [it, is_new] = members_.try_emplace(&type);
  if (!is_new) return;
  const auto table = tables.find(&type);
  std::vector<JsonRow> rows;
  if (table != tables.end()) rows = OnePathEach(table->second);
  AppendRest(type, "", &rows);
  for (const JsonRow& row : rows) {
    if ((row.flags & kHidden) != 0) continue;
    Member member{row, MemberName(row), ResolvePath(type, row.path), ResolvePath(type, row.with)};
    const bool is_resolved =
        member.path.empty() == row.path.empty() && member.with.empty() == row.with.empty();
    if (!is_resolved) continue;
    if (!member.path.empty() && member.path.back()->message_type() != nullptr)
      Add(*member.path.back()->message_type(), tables);
    it->second.push_back(std::move(member));
  }
}

Json MessageJson::Show(const Message& message) const {
  Json json = Json::object();
  for (const Member& member : members_.at(message.GetDescriptor())) {
    if (!member.with.empty() && !IsThere(message, member.with)) continue;
    Json value = member.row.derive ? member.row.derive(message) : ShowField(message, member);
    if (value.is_discarded()) continue;
    if (!member.name.empty()) {
      json[member.name] = std::move(value);
      continue;
    }
    for (const auto& [name, element] : value.items())
      if (!json.contains(name)) json[name] = element;
  }
  return json;
}

Json MessageJson::ShowField(const Message& message, const Member& member) const {
  if ((member.row.flags & kAlways) == 0 && !IsThere(message, member.path))
    return Json(Json::value_t::discarded);
  const Message& holder = HolderOf(message, member.path);
  const FieldDescriptor* field = member.path.back();
  if (!field->is_repeated()) return ShowValue(holder, field, -1, member.row);
  const Reflection& reflection = *holder.GetReflection();
  const int size = reflection.FieldSize(holder, field);
  if (!field->is_map()) {
    Json array = Json::array();
    for (int i = 0; i < size; ++i)
      array.push_back(ShowValue(holder, field, i, member.row));
    return array;
  }
  std::map<std::string, Json> sorted;  // a map of a message has no order of its own
  for (int i = 0; i < size; ++i) {
    const Message& pair = reflection.GetRepeatedMessage(holder, field, i);
    const Descriptor& type = *field->message_type();
    sorted[RawText(ShowValue(pair, type.map_key(), -1, {}))] =
        ShowValue(pair, type.map_value(), -1, member.row);
  }
  return sorted;
}

Json MessageJson::ShowValue(const Message& holder, const FieldDescriptor* field, int index,
                            const JsonRow& row) const {
  const Reflection& from = *holder.GetReflection();
  const bool is_one = index < 0;
  std::string scratch;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return is_one ? from.GetBool(holder, field) : from.GetRepeatedBool(holder, field, index);
    case FieldDescriptor::CPPTYPE_INT32:
      return is_one ? from.GetInt32(holder, field) : from.GetRepeatedInt32(holder, field, index);
    case FieldDescriptor::CPPTYPE_INT64:
      return is_one ? from.GetInt64(holder, field) : from.GetRepeatedInt64(holder, field, index);
    case FieldDescriptor::CPPTYPE_UINT32:
      return is_one ? from.GetUInt32(holder, field) : from.GetRepeatedUInt32(holder, field, index);
    case FieldDescriptor::CPPTYPE_UINT64:
      return is_one ? from.GetUInt64(holder, field) : from.GetRepeatedUInt64(holder, field, index);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return is_one ? from.GetFloat(holder, field) : from.GetRepeatedFloat(holder, field, index);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return is_one ? from.GetDouble(holder, field) : from.GetRepeatedDouble(holder, field, index);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumText(*field->enum_type(), is_one
                                               ? from.GetEnumValue(holder, field)
                                               : from.GetRepeatedEnumValue(holder, field, index));
    case FieldDescriptor::CPPTYPE_STRING:
      return TextJson(is_one ? from.GetStringReference(holder, field, &scratch)
                             : from.GetRepeatedStringReference(holder, field, index, &scratch),
                      row);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      const Message& message =
          is_one ? from.GetMessage(holder, field) : from.GetRepeatedMessage(holder, field, index);
      return IsTime(field) ? Json(TimeText(TimeOf(message))) : Show(message);
  }
  return nullptr;
}

std::string EnumText(const google::protobuf::EnumDescriptor& type, int value) {
  const google::protobuf::EnumValueDescriptor* name = type.FindValueByNumber(value);
  if (name == nullptr || absl::StrContains(name->name(), "UNSPECIFIED")) return "unknown";
  return absl::AsciiStrToLower(name->name());
}

std::string TimeText(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0 && time.nanos() == 0) return "";
  const absl::Time instant =
      absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", absl::FromUnixMicros(absl::ToUnixMicros(instant)),
                          absl::UTCTimeZone());
}

}  // namespace assay::client
