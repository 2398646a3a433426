#include "server/api/limits.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"

#include "assay/v1/admin_service.pb.h"
#include "assay/v1/history_service.pb.h"
#include "assay/v1/submission_service.pb.h"
#include "assay/v1/worker_service.pb.h"

namespace assay::api {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr absl::string_view kPackage = "assay.v1.";
constexpr absl::string_view kDuration = "google.protobuf.Duration";
constexpr absl::string_view kTimestamp = "google.protobuf.Timestamp";

// What is wrong with a field.
struct Violation {
  std::string field;  // spec.hyperparameters.key, from the request down
  std::string problem;
};
using Verdict = std::optional<Violation>;

// ------------------------------------------------------------------------------------- the checks

struct MessageCheck;

// The rows of one field, resolved.
struct FieldCheck {
  const FieldDescriptor* field = nullptr;
  std::optional<Limit> value;             // kName, kBytes or kRange
  std::optional<Limit> count;             // of a repeated one
  const MessageCheck* message = nullptr;  // of a message that has rows of its own
};

struct MessageCheck {
  std::optional<Limit> total;
  std::vector<FieldCheck> fields;
};

bool IsTime(const Descriptor& type) {
  return type.full_name() == kDuration || type.full_name() == kTimestamp;
}

bool NeedsValueRow(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
    case FieldDescriptor::CPPTYPE_ENUM:  // what is unknown is refused where it is read
      return false;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return IsTime(*field.message_type());
    default:
      return true;
  }
}

std::string Bounds(const Limit& limit) {
  return absl::StrCat("; ", limit.min, " to ", limit.max, " are taken");
}

Verdict CheckText(const Limit& limit, const std::string& text) {
  if (static_cast<int64_t>(text.size()) > limit.max)
    return Violation{
        "", absl::StrCat("has ", text.size(), " bytes; at most ", limit.max, " are taken")};
  const auto control = std::find_if(text.begin(), text.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
  if (limit.kind != LimitKind::kName || control == text.end()) return std::nullopt;
  return Violation{"", absl::StrCat("has a control character at byte ", control - text.begin(),
                                    "; a name is printable text")};
}

Verdict CheckInteger(const Limit& limit, int64_t value) {
  if (value >= limit.min && value <= limit.max) return std::nullopt;
  return Violation{"", absl::StrCat("is ", value, Bounds(limit))};
}

Verdict CheckReal(const Limit& limit, double value) {
  const bool is_any_taken = limit.min == std::numeric_limits<int64_t>::min() &&
                            limit.max == std::numeric_limits<int64_t>::max();
  if (is_any_taken) return std::nullopt;
  // Written so that what is not a number is out of range.
  if (value >= static_cast<double>(limit.min) && value <= static_cast<double>(limit.max))
    return std::nullopt;
  return Violation{"", absl::StrCat("is ", value, Bounds(limit))};
}

// A Timestamp or a Duration: both have seconds and nanos, under the same numbers.
Verdict CheckTime(const Limit& limit, const Message& time) {
  const Reflection& reflection = *time.GetReflection();
  const Descriptor& type = *time.GetDescriptor();
  const int64_t seconds = reflection.GetInt64(time, type.FindFieldByNumber(1));
  const int32_t nanos = reflection.GetInt32(time, type.FindFieldByNumber(2));
  if (seconds < limit.min || seconds > limit.max)
    return Violation{"", absl::StrCat("is ", seconds, " s", Bounds(limit))};
  if (nanos >= 0 && nanos < 1'000'000'000) return std::nullopt;
  return Violation{"", absl::StrCat("has ", nanos, " nanos; 0 to 999999999 are taken")};
}

Verdict Check(const MessageCheck& check, const Message& message);

Verdict CheckSingular(const FieldCheck& check, const Message& parent) {
  const Reflection& reflection = *parent.GetReflection();
  const FieldDescriptor* field = check.field;
  if (check.message != nullptr)
    return reflection.HasField(parent, field)
               ? Check(*check.message, reflection.GetMessage(parent, field))
               : std::nullopt;
  std::string scratch;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return CheckText(*check.value, reflection.GetStringReference(parent, field, &scratch));
    case FieldDescriptor::CPPTYPE_INT32:
      return CheckInteger(*check.value, reflection.GetInt32(parent, field));
    case FieldDescriptor::CPPTYPE_INT64:
      return CheckInteger(*check.value, reflection.GetInt64(parent, field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return CheckReal(*check.value, reflection.GetDouble(parent, field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return reflection.HasField(parent, field)
                 ? CheckTime(*check.value, reflection.GetMessage(parent, field))
                 : std::nullopt;
    default:
      return Violation{"", "is of a kind that has no limit"};
  }
}

Verdict CheckRepeated(const FieldCheck& check, const Message& parent) {
  const Reflection& reflection = *parent.GetReflection();
  const FieldDescriptor* field = check.field;
  const int size = reflection.FieldSize(parent, field);
  if (size > check.count->max)
    return Violation{
        "", absl::StrCat("has ", size, " items; at most ", check.count->max, " are taken")};
  std::string scratch;
  for (int i = 0; i < size; ++i) {
    Verdict verdict = check.message != nullptr
                          ? Check(*check.message, reflection.GetRepeatedMessage(parent, field, i))
                      : field->cpp_type() == FieldDescriptor::CPPTYPE_STRING
                          ? CheckText(*check.value, reflection.GetRepeatedStringReference(
                                                        parent, field, i, &scratch))
                          : Violation{"", "is of a kind that has no limit"};
    if (verdict.has_value()) return verdict;
  }
  return std::nullopt;
}

// A field without its rows: may be absent only.
Verdict CheckUnlimited(const FieldDescriptor* field, const Message& parent) {
  const Reflection& reflection = *parent.GetReflection();
  const bool is_there = field->is_repeated() ? reflection.FieldSize(parent, field) > 0
                                             : reflection.HasField(parent, field);
  if (!is_there) return std::nullopt;
  return Violation{"", "is not taken: this coordinator has no limit for it"};
}

bool IsLimited(const FieldCheck& check) {
  const bool has_value =
      check.value.has_value() || check.message != nullptr || !NeedsValueRow(*check.field);
  return has_value && (check.count.has_value() || !check.field->is_repeated());
}

Verdict CheckField(const FieldCheck& check, const Message& parent) {
  if (!IsLimited(check)) return CheckUnlimited(check.field, parent);
  return check.field->is_repeated() ? CheckRepeated(check, parent) : CheckSingular(check, parent);
}

Verdict Check(const MessageCheck& check, const Message& message) {
  const auto size =
      check.total.has_value() ? static_cast<int64_t>(message.ByteSizeLong()) : int64_t{0};
  if (check.total.has_value() && size > check.total->max)
    return Violation{"", absl::StrCat("has ", size, " bytes; at most ", check.total->max,
                                      " are taken: split it")};
  for (const FieldCheck& field : check.fields) {
    Verdict verdict = CheckField(field, message);
    if (!verdict.has_value()) continue;
    const std::string& name = field.field->name();
    verdict->field = verdict->field.empty() ? name : absl::StrCat(name, ".", verdict->field);
    return verdict;
  }
  return std::nullopt;
}

// --------------------------------------------------------------------------------- all the checks

// The checks of all messages that methods of the API take, each with what it holds. Constant once
// constructed.
class Checks {
 public:
  Checks() {
    for (const Limit& limit : LimitTable())
      rows_.emplace(limit.field, &limit);
    const FileDescriptor* const files[] = {v1::CreateSubmissionRequest::descriptor()->file(),
                                           v1::SynchronizeRequest::descriptor()->file(),
                                           v1::CreateTokenRequest::descriptor()->file(),
                                           v1::QueryResultsRequest::descriptor()->file()};
    for (const FileDescriptor* file : files)
      for (int s = 0; s < file->service_count(); ++s)
        for (int m = 0; m < file->service(s)->method_count(); ++m)
          Add(*file->service(s)->method(m)->input_type());
  }

  const MessageCheck* Find(const Descriptor* type) const {
    const auto it = checks_.find(type);
    return it == checks_.end() ? nullptr : it->second.get();
  }

  std::vector<std::string> FieldsWithoutLimit() const {
    std::vector<std::string> names;
    for (const auto& [type, check] : checks_)
      for (const FieldCheck& field : check->fields)
        if (!IsLimited(field)) names.push_back(field.field->full_name());
    return names;
  }

  std::vector<std::string> LimitsWithoutField() const {
    std::vector<std::string> names;
    for (const auto& [name, row] : rows_)
      if (used_.count(row) == 0) names.push_back(name);
    return names;
  }

 private:
  const MessageCheck* Add(const Descriptor& type) {
    std::unique_ptr<MessageCheck>& check = checks_[&type];
    if (check != nullptr) return check.get();
    check = std::make_unique<MessageCheck>();
    MessageCheck* const added = check.get();
    added->total = Row(type.full_name(), {LimitKind::kTotal});
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor* field = type.field(i);
      FieldCheck limits{.field = field};
      limits.value =
          Row(field->full_name(), {LimitKind::kName, LimitKind::kBytes, LimitKind::kRange});
      limits.count = Row(field->full_name(), {LimitKind::kCount});
      if (field->message_type() != nullptr && !IsTime(*field->message_type()))
        limits.message = Add(*field->message_type());
      if (!NeedsValueRow(*field) && limits.message == nullptr && !field->is_repeated()) continue;
      added->fields.push_back(limits);
    }
    return added;
  }

  std::optional<Limit> Row(absl::string_view name, const std::set<LimitKind>& kinds) {
    absl::ConsumePrefix(&name, kPackage);
    const auto [first, last] = rows_.equal_range(std::string(name));
    for (auto it = first; it != last; ++it) {
      if (kinds.count(it->second->kind) == 0) continue;
      used_.insert(it->second);
      return *it->second;
    }
    return std::nullopt;
  }

  std::multimap<std::string, const Limit*> rows_;
  std::set<const Limit*> used_;
  std::map<const Descriptor*, std::unique_ptr<MessageCheck>> checks_;
};

const Checks& AllChecks() {
  static const Checks* const checks = new Checks;  // never destroyed: calls may outlive main
  return *checks;
}

}  // namespace

absl::Status CheckLimits(const Message& request) {
  const MessageCheck* const check = AllChecks().Find(request.GetDescriptor());
  if (check == nullptr)
    return absl::InternalError(
        absl::StrCat(request.GetDescriptor()->full_name(), " is no request of the API"));
  const Verdict verdict = Check(*check, request);
  if (!verdict.has_value()) return absl::OkStatus();
  const std::string& field =
      verdict->field.empty() ? request.GetDescriptor()->name() : verdict->field;
  return absl::InvalidArgumentError(absl::StrCat(field, " ", verdict->problem));
}

std::vector<std::string> FieldsWithoutLimit() {
  return AllChecks().FieldsWithoutLimit();
}

std::vector<std::string> LimitsWithoutField() {
  return AllChecks().LimitsWithoutField();
}

}  // namespace assay::api
