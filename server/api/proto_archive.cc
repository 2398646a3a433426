#include "server/api/proto_archive.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

#include "common/log.h"
#include "common/status.h"

namespace assay::api {
namespace {

using google::protobuf::Duration;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::Timestamp;

// Of a map's entry: protobuf.dev, "Maps", backwards compatibility.
constexpr int kKeyNumber = 1;
constexpr int kValueNumber = 2;

// Names of members end in their unit.
int64_t TicksPerSecond(absl::string_view name) {
  CHECK(absl::EndsWith(name, "_us") || absl::EndsWith(name, "_ms")) << "member=" << Quoted(name);
  return absl::EndsWith(name, "_us") ? 1'000'000 : 1'000;
}

template <class Time>
void SetTicks(int64_t value, int64_t ticks_per_second, Message* message) {
  Time* const time = google::protobuf::DynamicCastToGenerated<Time>(message);
  time->set_seconds(value / ticks_per_second);
  time->set_nanos(
      static_cast<int32_t>(value % ticks_per_second * (1'000'000'000 / ticks_per_second)));
}

// The text of an entry of a map from texts to texts.
std::string EntryText(const Message& entry, int number) {
  return entry.GetReflection()->GetString(entry, entry.GetDescriptor()->FindFieldByNumber(number));
}

void SetEntryText(Message* entry, int number, const std::string& text) {
  entry->GetReflection()->SetString(entry, entry->GetDescriptor()->FindFieldByNumber(number), text);
}

}  // namespace

ProtoMember MemberOf(const Message& message, const char* name, const core::Shown& shown) {
  const char* const wanted = shown.name == nullptr ? name : shown.name;
  const FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName(wanted);
  CHECK(field != nullptr) << "message=" << message.GetDescriptor()->full_name()
                          << " field=" << wanted;
  return {.field = field, .name = name, .shown = shown};
}

// ----------------------------------------------------------------------------------------- writing

void ProtoWriter::Write(const ProtoMember& member, bool value) {
  message_->GetReflection()->SetBool(message_, member.field, value);
}

void ProtoWriter::Write(const ProtoMember& member, int32_t value) {
  message_->GetReflection()->SetInt32(message_, member.field, value);
}

void ProtoWriter::Write(const ProtoMember& member, int64_t value) {
  const Reflection* const reflection = message_->GetReflection();
  if (member.field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
    return reflection->SetInt64(message_, member.field, value);
  if (value == 0) return;
  const int64_t ticks_per_second = TicksPerSecond(member.name);
  Message* const time = reflection->MutableMessage(message_, member.field);
  if (member.field->message_type() == Timestamp::descriptor()) {
    SetTicks<Timestamp>(value, ticks_per_second, time);
  } else {
    SetTicks<Duration>(value, ticks_per_second, time);
  }
}

void ProtoWriter::Write(const ProtoMember& member, double value) {
  message_->GetReflection()->SetDouble(message_, member.field, value);
}

void ProtoWriter::Write(const ProtoMember& member, const std::string& value) {
  const Reflection* const reflection = message_->GetReflection();
  std::string text = absl::StrCat(member.shown.collection, value);
  if (member.field->is_repeated()) {
    reflection->AddString(message_, member.field, std::move(text));
  } else {
    reflection->SetString(message_, member.field, std::move(text));
  }
}

void ProtoWriter::Write(const ProtoMember& member,
                        const std::map<std::string, std::string>& value) {
  for (const auto& [key, text] : value) {
    Message* const entry = message_->GetReflection()->AddMessage(message_, member.field);
    SetEntryText(entry, kKeyNumber, key);
    SetEntryText(entry, kValueNumber, text);
  }
}

void ProtoWriter::WriteEnumerator(const ProtoMember& member, absl::string_view name) {
  if (member.field->cpp_type() == FieldDescriptor::CPPTYPE_STRING)
    return Write(member, std::string(name));
  const google::protobuf::EnumValueDescriptor* const value =
      member.field->enum_type()->FindValueByName(std::string(name));
  CHECK(value != nullptr) << "enum=" << member.field->enum_type()->full_name()
                          << " value=" << Quoted(name);
  message_->GetReflection()->SetEnum(message_, member.field, value);
}

// ----------------------------------------------------------------------------------------- reading

std::string ProtoReader::PathOf(const FieldDescriptor& field) const {
  return path_.empty() ? field.name() : absl::StrCat(path_, ".", field.name());
}

void ProtoReader::Read(const ProtoMember& member, bool& value) {
  value = message_.GetReflection()->GetBool(message_, member.field);
}

void ProtoReader::Read(const ProtoMember& member, int32_t& value) {
  value = message_.GetReflection()->GetInt32(message_, member.field);
}

void ProtoReader::Read(const ProtoMember& member, int64_t& value) {
  const Reflection* const reflection = message_.GetReflection();
  if (member.field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    value = reflection->GetInt64(message_, member.field);
    return;
  }
  const Duration* const duration = google::protobuf::DynamicCastToGenerated<const Duration>(
      &reflection->GetMessage(message_, member.field));
  CHECK(duration != nullptr) << "field=" << PathOf(*member.field);
  const int64_t ticks_per_second = TicksPerSecond(member.name);
  value = duration->seconds() * ticks_per_second +
          duration->nanos() / (1'000'000'000 / ticks_per_second);
}

void ProtoReader::Read(const ProtoMember& member, double& value) {
  value = message_.GetReflection()->GetDouble(message_, member.field);
}

void ProtoReader::Read(const ProtoMember& member, std::string& value) {
  value = message_.GetReflection()->GetString(message_, member.field);
  if (!absl::StartsWith(value, member.shown.collection)) {
    status_.Update(Annotate(absl::InvalidArgumentError(absl::StrCat(
                                "not a name in ", member.shown.collection, ": ", Shown(value))),
                            PathOf(*member.field)));
    return;
  }
  value.erase(0, absl::string_view(member.shown.collection).size());
}

void ProtoReader::Read(const ProtoMember& member, std::vector<std::string>& values) {
  const Reflection* const reflection = message_.GetReflection();
  for (int i = 0; i < reflection->FieldSize(message_, member.field); ++i)
    values.push_back(reflection->GetRepeatedString(message_, member.field, i));
}

void ProtoReader::Read(const ProtoMember& member, std::map<std::string, std::string>& values) {
  const Reflection* const reflection = message_.GetReflection();
  for (int i = 0; i < reflection->FieldSize(message_, member.field); ++i) {
    const Message& entry = reflection->GetRepeatedMessage(message_, member.field, i);
    values.emplace(EntryText(entry, kKeyNumber), EntryText(entry, kValueNumber));
  }
}

void ProtoReader::Read(const ProtoMember& member, core::SubmissionId& id) {
  const std::string name = message_.GetReflection()->GetString(message_, member.field);
  if (name.empty()) return;
  absl::StatusOr<core::SubmissionId> read = ParseSubmissionName(name);
  status_.Update(Annotate(read.status(), PathOf(*member.field)));
  if (read.ok()) id = *read;
}

}  // namespace assay::api
