// Records of the core as messages of the API and back, by the lists of their members
// (core/description.h). Private to convert.

#ifndef SERVER_API_PROTO_ARCHIVE_H_
#define SERVER_API_PROTO_ARCHIVE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

#include "server/api/names.h"
#include "server/core/described.h"
#include "server/core/id.h"

namespace assay::api {

// A member of a record as a field of its message.
struct ProtoMember {
  const google::protobuf::FieldDescriptor* field;
  absl::string_view name;  // in databases; a time's ends in its unit
  core::Shown shown;
};

// Dies if the message has no such field: the lists and the messages are of one program.
ProtoMember MemberOf(const google::protobuf::Message& message, const char* name,
                     const core::Shown& shown = {});

// Fills in a message. What the coordinator does not know yet stays unset: a time of 0, an optional
// without value, the id of nothing.
class ProtoWriter {
 public:
  explicit ProtoWriter(google::protobuf::Message* message) : message_(message) {}

  template <typename T>
  void operator()(const char* name, const T& value, core::Shown shown = {}) {
    if (shown.how == core::Shown::How::kNot) return;
    if constexpr (std::is_class_v<T> && requires { Fields(*this, value); }) {
      if (shown.how == core::Shown::How::kInPlace) return Fields(*this, value);
    }
    if constexpr (requires { value.valueless_by_exception(); }) {
      std::visit([this](const auto& kind) { (*this)(KindName(&kind), kind); }, value);
    } else {
      Write(MemberOf(*message_, name, shown), value);
    }
  }
  template <typename T>
  void Added(const char* name, const T& value, core::Shown shown = {}) {
    (*this)(name, value, shown);
  }
  template <typename T>
  void Elsewhere(const T&) {}
  template <typename T>
  void Former(const T&) {}

 private:
  void Write(const ProtoMember& member, bool value);
  void Write(const ProtoMember& member, int32_t value);
  void Write(const ProtoMember& member, int64_t value);  // also a time or a duration
  void Write(const ProtoMember& member, double value);
  void Write(const ProtoMember& member, const std::string& value);  // also an element
  void Write(const ProtoMember& member, const std::map<std::string, std::string>& value);
  // Into an enumeration of the same names, or a text.
  void WriteEnumerator(const ProtoMember& member, absl::string_view name);

  template <typename T>
  requires std::is_enum_v<T>
  void Write(const ProtoMember& member, T value) { WriteEnumerator(member, ToString(value)); }
  template <char kLetter>
  void Write(const ProtoMember& member, core::NumberedId<kLetter> id) {
    Write(member, NameOf(id));
  }
  template <typename T>
  requires std::is_class_v<T>
  void Write(const ProtoMember& member, const T& value) {
    const google::protobuf::Reflection* const reflection = message_->GetReflection();
    ProtoWriter writer(member.field->is_repeated()
                           ? reflection->AddMessage(message_, member.field)
                           : reflection->MutableMessage(message_, member.field));
    Fields(writer, value);
  }
  template <typename T>
  void Write(const ProtoMember& member, const std::optional<T>& value) {
    if (value.has_value()) Write(member, *value);
  }
  template <typename T>
  void Write(const ProtoMember& member, const std::vector<T>& values) {
    for (const T& value : values)
      Write(member, value);
  }

  google::protobuf::Message* const message_;
};

// Reads a message; the first problem, INVALID_ARGUMENT with the field's path, stays in status().
// Enumerations are not read: no record that callers fill in has one.
class ProtoReader {
 public:
  // `path`: what the message is called in errors, "spec"; empty: nothing stands before its fields.
  ProtoReader(const google::protobuf::Message& message, absl::string_view path)
      : message_(message), path_(path) {}

  template <typename T>
  void operator()(const char* name, T& value, core::Shown shown = {}) {
    if (shown.how == core::Shown::How::kNot) return;
    if constexpr (requires { value.valueless_by_exception(); }) {
      ReadKind(value);
    } else {
      Read(MemberOf(message_, name, shown), value);
    }
  }
  template <typename T>
  void Added(const char* name, T& value, core::Shown shown = {}) {
    (*this)(name, value, shown);
  }
  template <typename T>
  void Elsewhere(T&) {}
  template <typename T>
  void Former(T&) {}

  const absl::Status& status() const { return status_; }

 private:
  void Read(const ProtoMember& member, bool& value);
  void Read(const ProtoMember& member, int32_t& value);
  void Read(const ProtoMember& member, int64_t& value);  // also a time or a duration
  void Read(const ProtoMember& member, double& value);
  void Read(const ProtoMember& member, std::string& value);
  void Read(const ProtoMember& member, std::vector<std::string>& values);
  void Read(const ProtoMember& member, std::map<std::string, std::string>& values);
  void Read(const ProtoMember& member, core::SubmissionId& id);  // empty: none
  std::string PathOf(const google::protobuf::FieldDescriptor& field) const;

  template <typename T>
  requires std::is_class_v<T>
  void Read(const ProtoMember& member, T& value) {
    if (message_.GetReflection()->HasField(message_, member.field))
      ReadMessage(message_.GetReflection()->GetMessage(message_, member.field), *member.field,
                  value);
  }
  template <typename T>
  void Read(const ProtoMember& member, std::optional<T>& value) {
    if (message_.GetReflection()->HasField(message_, member.field)) Read(member, value.emplace());
  }
  template <typename T>
  void Read(const ProtoMember& member, std::vector<T>& values) {
    const google::protobuf::Reflection* const reflection = message_.GetReflection();
    for (int i = 0; i < reflection->FieldSize(message_, member.field); ++i)
      ReadMessage(reflection->GetRepeatedMessage(message_, member.field, i), *member.field,
                  values.emplace_back());
  }
  template <typename T>
  void ReadMessage(const google::protobuf::Message& message,
                   const google::protobuf::FieldDescriptor& field, T& value) {
    ProtoReader reader(message, PathOf(field));
    Fields(reader, value);
    status_.Update(reader.status_);
  }
  // The kind that the message has; with none `value` stays as it is.
  template <typename... Kinds>
  void ReadKind(std::variant<Kinds...>& value) {
    (ReadIfIs<Kinds>(value), ...);
  }
  template <typename Kind, typename Value>
  void ReadIfIs(Value& value) {
    constexpr const Kind* kKind = nullptr;
    const google::protobuf::FieldDescriptor* const field =
        MemberOf(message_, KindName(kKind)).field;
    const google::protobuf::Reflection* const reflection = message_.GetReflection();
    if (reflection->HasField(message_, field))
      ReadMessage(reflection->GetMessage(message_, field), *field, value.template emplace<Kind>());
  }

  const google::protobuf::Message& message_;
  const std::string path_;
  absl::Status status_;
};

// The message M of a record.
template <class M, typename T>
M Described(const T& value) {
  M message;
  ProtoWriter writer(&message);
  Fields(writer, value);
  return message;
}

// The record T of a message, which errors call `path`.
template <typename T>
absl::StatusOr<T> ReadDescribed(const google::protobuf::Message& message, absl::string_view path) {
  T value;
  ProtoReader reader(message, path);
  Fields(reader, value);
  if (!reader.status().ok()) return reader.status();
  return value;
}

}  // namespace assay::api

#endif  // SERVER_API_PROTO_ARCHIVE_H_
