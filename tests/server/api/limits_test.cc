#include "server/api/limits.h"

#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"

#include "assay/v1/admin_service.pb.h"
#include "assay/v1/history_service.pb.h"
#include "assay/v1/submission_service.pb.h"
#include "assay/v1/worker_service.pb.h"

#include "tests/support/status_matchers.h"

namespace assay::api {
namespace {

using assay::testing::IsOk;
using assay::testing::StatusIs;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kRefused = absl::StatusCode::kInvalidArgument;

TEST(LimitsTest, EveryFieldThatACallerCanSendHasALimit) {
  EXPECT_THAT(FieldsWithoutLimit(), IsEmpty()) << "add rows to server/api/limit_table.cc";
}

TEST(LimitsTest, EveryLimitIsThatOfAField) {
  EXPECT_THAT(LimitsWithoutField(), IsEmpty()) << "remove them from server/api/limit_table.cc";
}

// A worker that lies about what it does harms nobody who looks.
TEST(LimitsTest, FiguresOfANodeAreNumbersThatANodeCanHave) {
  v1::SynchronizeRequest request;
  v1::NodeFigures* const figures = request.mutable_figures();
  figures->set_run_cpu_share(1);
  figures->set_quality(-0.5);
  figures->set_storage_read_bytes_per_s(200e9);
  EXPECT_THAT(CheckLimits(request), IsOk());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity, -0.1}) {
    for (int i = 0; i < figures->GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* const field = figures->GetDescriptor()->field(i);
      const bool may_be_negative = field->name() == "quality" && bad == -0.1;
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_DOUBLE || may_be_negative) continue;
      v1::SynchronizeRequest hostile;
      hostile.mutable_figures()->GetReflection()->SetDouble(hostile.mutable_figures(), field, bad);
      EXPECT_THAT(CheckLimits(hostile), StatusIs(kRefused, HasSubstr(field->name())))
          << field->name() << " " << bad;
    }
  }
}

// The messages that methods take, found here without the code under test.
std::set<const Descriptor*> Requests() {
  const FileDescriptor* const files[] = {v1::CreateSubmissionRequest::descriptor()->file(),
                                         v1::SynchronizeRequest::descriptor()->file(),
                                         v1::CreateTokenRequest::descriptor()->file(),
                                         v1::QueryResultsRequest::descriptor()->file()};
  std::set<const Descriptor*> types;
  for (const FileDescriptor* file : files)
    for (int s = 0; s < file->service_count(); ++s)
      for (int m = 0; m < file->service(s)->method_count(); ++m)
        types.insert(file->service(s)->method(m)->input_type());
  return types;
}

// Calls `visit` for each text of `message` and of the messages that it can hold, with each made to
// exist; keys and values of maps included.
using Visit = std::function<void(google::protobuf::Message*, const FieldDescriptor*)>;
void ForEachText(google::protobuf::Message* message, const Visit& visit) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      visit(message, field);
      reflection.ClearField(message, field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      ForEachText(field->is_repeated() ? reflection.AddMessage(message, field)
                                       : reflection.MutableMessage(message, field),
                  visit);
      reflection.ClearField(message, field);
    }
  }
}

// Of each text in each request: two megabytes are refused by name, wherever it is nested.
TEST(LimitsTest, NoTextMayHaveTwoMegabytes) {
  const std::string large(2 << 20, 'x');
  int count = 0;
  for (const Descriptor* type : Requests()) {
    const std::unique_ptr<google::protobuf::Message> request(
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
    ForEachText(request.get(), [&](google::protobuf::Message* parent,
                                   const FieldDescriptor* field) {
      if (field->is_repeated())
        parent->GetReflection()->AddString(parent, field, large);
      else
        parent->GetReflection()->SetString(parent, field, large);
      const bool is_whole = type->name() == "EventBatch";  // refused as a whole before its fields
      EXPECT_THAT(CheckLimits(*request),
                  StatusIs(kRefused, HasSubstr(is_whole ? "split it" : field->name())))
          << field->full_name();
      ++count;
    });
  }
  EXPECT_GT(count, 100);
}

TEST(LimitsTest, ALargeLabelOfAWorkerIsRefusedWithItsSizeAndTheLimit) {
  v1::SynchronizeRequest request;
  (*request.mutable_labels())["rack"] = std::string(1000, 'x');

  EXPECT_THAT(CheckLimits(request),
              StatusIs(kRefused, AllOf(HasSubstr("labels.value"), HasSubstr("1000 bytes"),
                                       HasSubstr("at most 256"))));
}

TEST(LimitsTest, TooManyItemsAreRefused) {
  v1::SynchronizeRequest request;
  for (int i = 0; i < 65; ++i)
    (*request.mutable_labels())[absl::StrCat(i)] = "";
  EXPECT_THAT(CheckLimits(request), StatusIs(kRefused, HasSubstr("labels has 65 items")));

  v1::CreateSubmissionRequest create;
  for (int i = 0; i < 257; ++i)
    create.mutable_spec()->add_hyperparameters();
  EXPECT_THAT(CheckLimits(create), StatusIs(kRefused, HasSubstr("spec.hyperparameters has 257")));

  v1::EventBatch batch;
  for (int i = 0; i < 1001; ++i)
    batch.add_events();
  EXPECT_THAT(CheckLimits(batch), StatusIs(kRefused, HasSubstr("events has 1001 items")));
}

TEST(LimitsTest, ABatchIsLimitedAsAWhole) {
  v1::EventBatch batch;
  for (int i = 0; i < 3; ++i)
    batch.add_events()->set_text(std::string(400'000, 'x'));

  EXPECT_THAT(CheckLimits(batch),
              StatusIs(kRefused, AllOf(HasSubstr("EventBatch"), HasSubstr("split it"))));
}

TEST(LimitsTest, NumbersAndTimesHaveRanges) {
  v1::ListRunsRequest list;
  list.set_page_size(1001);
  EXPECT_THAT(CheckLimits(list), StatusIs(kRefused, HasSubstr("page_size is 1001; 0 to 1000")));
  list.set_page_size(-1);
  EXPECT_THAT(CheckLimits(list), StatusIs(kRefused, HasSubstr("page_size")));

  v1::SynchronizeRequest call;
  call.mutable_poll_timeout()->set_seconds(std::numeric_limits<int64_t>::max());
  EXPECT_THAT(CheckLimits(call), StatusIs(kRefused, HasSubstr("poll_timeout")));
  call.mutable_poll_timeout()->set_seconds(0);
  call.mutable_poll_timeout()->set_nanos(-1);
  EXPECT_THAT(CheckLimits(call), StatusIs(kRefused, HasSubstr("nanos")));
  call.Clear();
  call.set_clock_offset_us(std::numeric_limits<int64_t>::min());
  EXPECT_THAT(CheckLimits(call), StatusIs(kRefused, HasSubstr("clock_offset_us")));

  v1::ImportSubmissionRequest import;
  import.mutable_header()->set_score_minutes(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(CheckLimits(import), StatusIs(kRefused, HasSubstr("score_minutes is nan")));
}

TEST(LimitsTest, NamesHaveNoControlCharacters) {
  v1::CreateSubmissionRequest request;
  request.mutable_spec()->set_system("box\x1b[2J");
  EXPECT_THAT(CheckLimits(request),
              StatusIs(kRefused, HasSubstr("spec.system has a control character at byte 3")));
  request.mutable_spec()->set_system("Système 3");
  EXPECT_THAT(CheckLimits(request), IsOk());
}

TEST(LimitsTest, WhatAgentsAndPeopleSendPasses) {
  v1::SynchronizeRequest call;
  call.set_worker("workers/w0");
  call.set_system_description_json(std::string(100'000, ' '));
  call.mutable_status()->set_exit_code(-1);
  call.set_clock_offset_us(-5'000'000);
  EXPECT_THAT(CheckLimits(call), IsOk());

  v1::EventBatch batch;
  batch.add_events()->set_text(std::string(256 << 10, '\xff'));  // a log's longest line
  EXPECT_THAT(CheckLimits(batch), IsOk());
  EXPECT_THAT(CheckLimits(v1::ListTokensRequest()), IsOk());
}

}  // namespace
}  // namespace assay::api
