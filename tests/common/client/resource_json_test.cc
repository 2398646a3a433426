#include "common/client/resource_json.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace assay::client {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// A message of the API and what people see of it.
struct Shown {
  std::unique_ptr<Message> message;
  std::function<std::string(const Message&)> text;
};

template <class T>
Shown ShownBy(Json (*json)(const T&)) {
  return {std::make_unique<T>(), [json](const Message& message) {
            return DumpSafely(json(static_cast<const T&>(message)), -1);
          }};
}

std::vector<Shown> AllShown() {
  std::vector<Shown> all;
  all.push_back(ShownBy(EntryJson));
  all.push_back(ShownBy(RunJson));
  all.push_back(ShownBy(NodeJson));
  all.push_back(ShownBy(AllocationJson));
  all.push_back(ShownBy(DatasetJson));
  all.push_back(ShownBy(TokenJson));
  all.push_back(ShownBy(RoundJson));
  all.push_back(ShownBy(FindingJson));
  all.push_back(ShownBy(ReferenceJson));
  all.push_back(ShownBy(AuditJson));
  all.push_back(ShownBy(RunEventJson));
  return all;
}

bool HasParts(const FieldDescriptor* field) {
  return field->message_type() != nullptr && !field->is_map() &&
         field->message_type()->well_known_type() == Descriptor::WELLKNOWNTYPE_UNSPECIFIED;
}

// All fields of a type and of the messages that it holds, but for those messages themselves.
void AddLeaves(const Descriptor& type, const FieldPath& above, std::vector<FieldPath>* leaves) {
  for (int i = 0; i < type.field_count(); ++i) {
    FieldPath path = above;
    path.push_back(type.field(i));
    if (HasParts(type.field(i))) {
      AddLeaves(*type.field(i)->message_type(), path, leaves);
    } else {
      leaves->push_back(path);
    }
  }
}

// The message with the last field of `path`, made where it is not there yet.
Message* MakeHolder(Message* message, const FieldPath& path) {
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    const Reflection& reflection = *message->GetReflection();
    if (!path[i]->is_repeated()) {
      message = reflection.MutableMessage(message, path[i]);
    } else if (reflection.FieldSize(*message, path[i]) > 0) {
      message = reflection.MutableRepeatedMessage(message, path[i], 0);
    } else {
      message = reflection.AddMessage(message, path[i]);
    }
  }
  return message;
}

void SetSomething(Message* message, const FieldDescriptor* field) {
  const Reflection& reflection = *message->GetReflection();
  const std::string text = R"({"a":1})";  // which is JSON, too
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return field->is_repeated() ? reflection.AddString(message, field, text)
                                  : reflection.SetString(message, field, text);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(message, field, true);
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.SetInt32(message, field, 7);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.SetInt64(message, field, 7);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.SetDouble(message, field, 7.5);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.SetEnumValue(
          message, field,
          field->enum_type()->value(field->enum_type()->value_count() - 1)->number());
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      Message* part = field->is_repeated() ? reflection.AddMessage(message, field)
                                           : reflection.MutableMessage(message, field);
      for (int i = 0; i < part->GetDescriptor()->field_count(); ++i)
        SetSomething(part, part->GetDescriptor()->field(i));
      return;
    }
    default:
      ADD_FAILURE() << field->full_name() << " is of a type that this test cannot set";
  }
}

std::string PathText(const FieldPath& path) {
  return absl::StrCat(path.front()->containing_type()->name(), ".",
                      absl::StrJoin(path, ".", [](std::string* out, const FieldDescriptor* field) {
                        absl::StrAppend(out, field->name());
                      }));
}

// Whether the field makes a difference to what is shown: alone, or beside all others.
bool IsShown(const Shown& shown, const FieldPath& path) {
  const std::unique_ptr<Message> alone(shown.message->New());
  Message* holder = MakeHolder(alone.get(), path);
  const std::string without = shown.text(*alone);
  SetSomething(holder, path.back());
  if (shown.text(*alone) != without) return true;

  const std::unique_ptr<Message> full(shown.message->New());
  for (int i = 0; i < full->GetDescriptor()->field_count(); ++i)
    SetSomething(full.get(), full->GetDescriptor()->field(i));
  const std::string with = shown.text(*full);
  holder = MakeHolder(full.get(), path);
  holder->GetReflection()->ClearField(holder, path.back());
  return shown.text(*full) != with;
}

TEST(ResourceTablesTest, EachPathNamesAField) {
  for (const auto& [type, rows] : ResourceTables())
    for (const JsonRow& row : OnePathEach(rows)) {
      if (!row.path.empty()) {
        EXPECT_FALSE(ResolvePath(*type, row.path).empty())
            << type->name() << " has no field '" << row.path << "' (shown as '" << row.member
            << "')";
      }
      if (!row.with.empty()) {
        EXPECT_FALSE(ResolvePath(*type, row.with).empty())
            << type->name() << " has no field '" << row.with << "', with which '" << row.path
            << "' is shown";
      }
    }
}

TEST(ResourceTablesTest, EachFieldIsShownOrSaidToBeHidden) {
  std::set<const FieldDescriptor*> hidden;
  for (const auto& [type, rows] : ResourceTables())
    for (const JsonRow& row : OnePathEach(rows))
      if ((row.flags & kHidden) != 0) hidden.insert(ResolvePath(*type, row.path).back());
  for (const Shown& shown : AllShown()) {
    std::vector<FieldPath> leaves;
    AddLeaves(*shown.message->GetDescriptor(), {}, &leaves);
    for (const FieldPath& path : leaves) {
      const bool is_hidden =
          std::any_of(path.begin(), path.end(),
                      [&](const FieldDescriptor* field) { return hidden.count(field) > 0; });
      EXPECT_TRUE(is_hidden || IsShown(shown, path))
          << PathText(path)
          << " is lost: show it in common/client/resource_json.cc, or hide it there";
    }
  }
}

TEST(ResourceTablesTest, AFieldThatNoRowMentionsIsShownUnderItsName) {
  JsonTables tables = ResourceTables();
  std::erase_if(tables[v1::Worker::descriptor()], [](const JsonRow& row) {
    return row.path == "last_seen_time" || row.path == "capabilities.core_count";
  });
  v1::Worker worker;
  worker.set_name("workers/w0");
  worker.set_state(v1::Worker::ALIVE);
  worker.mutable_capabilities()->set_core_count(8);
  worker.mutable_last_seen_time()->set_seconds(1);
  worker.set_version("1.2");
  EXPECT_EQ(DumpSafely(NodeJson(worker), -1),
            R"({"id":"w0","state":"alive","cores":8,"last_seen":"1970-01-01T00:00:01Z",)"
            R"("version":"1.2"})");
  EXPECT_EQ(DumpSafely(MessageJson(tables).Show(worker), -1),
            R"({"id":"w0","state":"alive","version":"1.2","core_count":8,)"
            R"("last_seen_time":"1970-01-01T00:00:01Z"})");
}

TEST(ResourceJsonTest, WhatIsNotKnownYetIsAbsent) {
  v1::Run run;
  run.set_name("runs/r-7");
  run.set_submission("submissions/e-3");
  run.set_state(v1::Run::RUNNING);

  const Json json = RunJson(run);

  EXPECT_EQ(json.dump(), R"({"id":"r-7","entry":"e-3","state":"running"})");
  EXPECT_FALSE(TimeToSolutionSeconds(run).has_value());
  run.set_run_start_ms(1000);
  run.set_run_stop_ms(3500);
  EXPECT_EQ(RunJson(run)["seconds"], 2.5);
}

TEST(ResourceJsonTest, AStateNewerThanThisProgramIsUnknown) {
  EXPECT_EQ(StateText(static_cast<v1::Run::State>(99)), "unknown");
  EXPECT_EQ(StateText(v1::Submission::VALID), "valid");
}

TEST(ResourceJsonTest, TimesAreInUtcWithMicroseconds) {
  google::protobuf::Timestamp time;
  EXPECT_EQ(TimeText(time), "");
  time.set_seconds(1);
  time.set_nanos(2500);
  EXPECT_EQ(TimeText(time), "1970-01-01T00:00:01.000002Z");
}

TEST(ResourceJsonTest, ASetIsAPartOfItsEntry) {
  v1::Submission submission;
  submission.set_name("submissions/e-42");
  submission.set_state(v1::Submission::VALID);
  submission.mutable_spec()->set_system("rome");
  submission.mutable_spec()->set_round("hpc-3.0.0");
  submission.mutable_spec()->set_benchmark("cosmoflow");
  submission.mutable_create_time()->set_seconds(1);
  submission.mutable_spec()->set_node_count(2);
  submission.set_score_minutes(1.5);
  submission.add_runs("runs/r-1");
  EXPECT_EQ(SetJson(submission).dump(),
            R"({"id":"s-42","entry":"e-42","state":"valid","run_count":1,"nodes":2,)"
            R"("round":"hpc-3.0.0","benchmark":"cosmoflow","score_minutes":1.5,)"
            R"("created":"1970-01-01T00:00:01Z","runs":["r-1"]})");
}

TEST(ResourceJsonTest, ASetWithoutAConvergenceSaysWhy) {
  v1::Submission submission;
  submission.set_name("submissions/e-1");
  submission.mutable_reference()->set_error("no reference");
  const Json json = EntryJson(submission);
  EXPECT_EQ(json["reference_verdict"], "none: no reference");
  EXPECT_EQ(json["convergence"].dump(), R"({"error":"no reference"})");
}

}  // namespace
}  // namespace assay::client
