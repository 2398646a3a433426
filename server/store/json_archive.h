// Writes and reads records as JSON objects by the lists of their members (core/description.h).
// Private to the codec.

#ifndef SERVER_STORE_JSON_ARCHIVE_H_
#define SERVER_STORE_JSON_ARCHIVE_H_

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "rapidjson/document.h"
#include "rapidjson/stringbuffer.h"
#include "rapidjson/writer.h"

#include "server/core/described.h"
#include "server/core/id.h"

namespace assay::store {

template <typename T>
concept Enumeration = std::is_enum_v<T>;
template <typename T>
concept Record = std::is_class_v<T>;

// The enumerator written as `text`; our enumerations count from zero without gaps.
template <Enumeration E>
std::optional<E> ParseEnum(absl::string_view text) {
  for (int i = 0; !ToString(static_cast<E>(i)).empty(); ++i)
    if (ToString(static_cast<E>(i)) == text) return static_cast<E>(i);
  return std::nullopt;
}

class JsonWriter {
 public:
  template <typename T>
  void operator()(const char* name, const T& value, core::Shown = {}) {
    writer_.Key(name);
    Write(value);
  }
  template <typename T>
  void Added(const char* name, const T& value, core::Shown = {}) {
    (*this)(name, value);
  }
  template <typename T>
  void Elsewhere(const T&) {}
  // Nothing writes what only earlier versions have.
  template <typename T>
  void Former(const T&) {}

  // {"trainer": {...}}: the kind names the value.
  template <typename... Kinds>
  void Write(const std::variant<Kinds...>& value) {
    writer_.StartObject();
    std::visit([this](const auto& kind) { (*this)(KindName(&kind), kind); }, value);
    writer_.EndObject();
  }
  template <Record T>
  void Write(const T& value) {
    static_assert(core::IsDescribed<T>(), "its list in core/description.h leaves a member out");
    writer_.StartObject();
    Fields(*this, value);
    writer_.EndObject();
  }
  void Write(bool value) { writer_.Bool(value); }
  void Write(int32_t value) { writer_.Int(value); }
  void Write(int64_t value) { writer_.Int64(value); }
  void Write(double value) {
    if (std::isfinite(value)) {
      writer_.Double(value);
    } else {
      Write(std::string(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"));
    }
  }
  void Write(const std::string& value) {
    writer_.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  }
  template <Enumeration E>
  void Write(E value) {
    Write(std::string(ToString(value)));
  }
  template <char kLetter>
  void Write(core::NumberedId<kLetter> id) {
    Write(id.is_none() ? std::string() : id.ToString());
  }
  template <typename T>
  void Write(const std::optional<T>& value) {
    if (value.has_value()) {
      Write(*value);
    } else {
      writer_.Null();
    }
  }
  template <typename T>
  void Write(const std::vector<T>& values) {
    writer_.StartArray();
    for (const T& value : values)
      Write(value);
    writer_.EndArray();
  }
  void Write(const std::map<std::string, std::string>& values) {
    writer_.StartObject();
    for (const auto& [name, value] : values) {
      writer_.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
      Write(value);
    }
    writer_.EndObject();
  }

  std::string Take() { return std::string(buffer_.GetString(), buffer_.GetSize()); }

 private:
  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer> writer_{buffer_};
};

// Reads one object; the first problem stays in status().
class JsonReader {
 public:
  explicit JsonReader(const rapidjson::Value* object) : object_(object) {}

  template <typename T>
  void operator()(const char* name, T& value, core::Shown = {}) {
    if (!status_.ok()) return;
    const bool is_object = object_->IsObject();
    const auto it = is_object ? object_->FindMember(name) : rapidjson::Value::ConstMemberIterator();
    if (!is_object || it == object_->MemberEnd()) {
      Fail(name, "is missing");
    } else if (!Read(it->value, value)) {
      Fail(name, "has the wrong type or value");
    }
  }

  // What an earlier version wrote does not have the member: it keeps its default.
  template <typename T>
  void Added(const char* name, T& value, core::Shown = {}) {
    if (object_->IsObject() && object_->HasMember(name)) (*this)(name, value);
  }

  template <typename T>
  void Elsewhere(T&) {}

  // Takes over what an earlier version wrote elsewhere (former_members.h).
  template <typename T>
  void Former(T& value) {
    if (status_.ok() && object_->IsObject()) ReadFormer(*this, value);
  }
  bool Has(const char* name) const { return object_->HasMember(name); }

  const absl::Status& status() const { return status_; }

 private:
  using Json = rapidjson::Value;

  void Fail(const char* name, absl::string_view problem) {
    if (status_.ok())
      status_ = absl::DataLossError(absl::StrCat("member \"", name, "\" ", problem));
  }

  template <typename... Kinds>
  bool Read(const Json& json, std::variant<Kinds...>& value) {
    return json.IsObject() && (ReadKind<Kinds>(json, value) || ...);
  }
  // False if the value is of another kind.
  template <typename Kind, typename Value>
  bool ReadKind(const Json& json, Value& value) {
    constexpr const Kind* kKind = nullptr;
    const auto it = json.FindMember(KindName(kKind));
    return it != json.MemberEnd() && Read(it->value, value.template emplace<Kind>());
  }
  template <Record T>
  bool Read(const Json& json, T& value) {
    JsonReader reader(&json);
    Fields(reader, value);
    if (status_.ok()) status_ = reader.status_;
    return true;  // the inner reader has said what is wrong
  }
  bool Read(const Json& json, bool& value) {
    if (!json.IsBool()) return false;
    value = json.GetBool();
    return true;
  }
  bool Read(const Json& json, int32_t& value) {
    if (!json.IsInt()) return false;
    value = json.GetInt();
    return true;
  }
  bool Read(const Json& json, int64_t& value) {
    if (!json.IsInt64()) return false;
    value = json.GetInt64();
    return true;
  }
  bool Read(const Json& json, double& value) {
    if (json.IsString()) return absl::SimpleAtod(json.GetString(), &value);
    if (!json.IsNumber()) return false;
    value = json.GetDouble();
    return true;
  }
  bool Read(const Json& json, std::string& value) {
    if (!json.IsString()) return false;
    value.assign(json.GetString(), json.GetStringLength());
    return true;
  }
  template <Enumeration E>
  bool Read(const Json& json, E& value) {
    if (!json.IsString()) return false;
    const std::optional<E> parsed = ParseEnum<E>(json.GetString());
    if (parsed.has_value()) value = *parsed;
    return parsed.has_value();
  }
  template <char kLetter>
  bool Read(const Json& json, core::NumberedId<kLetter>& id) {
    if (!json.IsString()) return false;
    const absl::string_view text(json.GetString(), json.GetStringLength());
    id.number = 0;
    return text.empty() || (text.size() > 2 && text[0] == kLetter && text[1] == '-' &&
                            absl::SimpleAtoi(text.substr(2), &id.number) && id.number > 0);
  }
  template <typename T>
  bool Read(const Json& json, std::optional<T>& value) {
    value.reset();
    return json.IsNull() || Read(json, value.emplace());
  }
  template <typename T>
  bool Read(const Json& json, std::vector<T>& values) {
    if (!json.IsArray()) return false;
    values.clear();
    for (const Json& element : json.GetArray())
      if (!Read(element, values.emplace_back())) return false;
    return true;
  }
  bool Read(const Json& json, std::map<std::string, std::string>& values) {
    if (!json.IsObject()) return false;
    values.clear();
    for (const auto& [name, value] : json.GetObject())
      if (!Read(value, values[std::string(name.GetString(), name.GetStringLength())])) return false;
    return true;
  }

  const Json* const object_;
  absl::Status status_;
};

}  // namespace assay::store

#endif  // SERVER_STORE_JSON_ARCHIVE_H_
