// What callers may send and what becomes of too much of it: a real assayd and hostile clients.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"

#include "tests/integration/service_fixture.h"

namespace assay::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using ::testing::AllOf;
using ::testing::HasSubstr;

using BoundsTest = ServiceTest;

// Puts `text` into the first text field of the message, or of a message in it. False if there is
// none.
bool FillFirstText(const std::string& text, Message* message) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    if (field->is_repeated()) continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      reflection.SetString(message, field, text);
      return true;
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
        FillFirstText(text, reflection.MutableMessage(message, field)))
      return true;
  }
  return false;
}

TEST_F(BoundsTest, EveryMethodRefusesWhatIsTooLargeBeforeItLooksAtIt) {
  Client worker(deployment_.Worker("w0"));
  const FileDescriptor* const files[] = {v1::CreateSubmissionRequest::descriptor()->file(),
                                         v1::SynchronizeRequest::descriptor()->file(),
                                         v1::CreateTokenRequest::descriptor()->file()};
  int count = 0;
  for (const FileDescriptor* file : files) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        const MethodDescriptor* method = file->service(s)->method(m);
        const std::unique_ptr<Message> request(google::protobuf::MessageFactory::generated_factory()
                                                   ->GetPrototype(method->input_type())
                                                   ->New());
        if (!FillFirstText(std::string(5000, 'x'), request.get())) continue;
        const bool is_agents = absl::EndsWith(file->service(s)->name(), "WorkerService");

        const absl::Status status =
            RawStatus(is_agents ? &worker : &*root_,
                      absl::StrCat("/", file->service(s)->full_name(), "/", method->name()),
                      request->SerializeAsString());

        EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                     AllOf(HasSubstr("5000 bytes"), HasSubstr("at most"))))
            << method->full_name();
        ++count;
      }
    }
  }
  EXPECT_GT(count, 20);
}

TEST_F(BoundsTest, AWorkerWithALargeLabelIsRefusedAndNobodyElseNotices) {
  Client worker(deployment_.Worker("w0"));
  v1::SynchronizeRequest request;
  request.set_worker("workers/w0");
  request.set_incarnation("i1");
  request.mutable_status()->set_phase(v1::WorkerStatus::IDLE);
  (*request.mutable_labels())["rack"] = std::string(1 << 20, '\\');

  EXPECT_THAT(worker.Call(worker.worker(), &Workers::Synchronize, request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("labels.value")));

  const auto listed = root_->Call(root_->admin(), &Admin::ListWorkers, v1::ListWorkersRequest());
  ASSERT_THAT(listed, IsOk());
  EXPECT_EQ(listed->workers_size(), 0);
}

}  // namespace
}  // namespace assay::testing
