// The API as clients have compiled it: proto/api.lock has a line per field, enum value and method.
// A line that changes or disappears breaks them. After an addition, run
//
//   ASSAY_WRITE_API_LOCK=1 build/dev/tests/server_api_test --gtest_filter='ApiLockTest.*'
//
// and read the difference: it must only have lines that start with +.

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"

#include "assay/v1/admin_service.pb.h"
#include "assay/v1/config.pb.h"
#include "assay/v1/engine_choices.pb.h"
#include "assay/v1/fabric.pb.h"
#include "assay/v1/history_service.pb.h"
#include "assay/v1/resources.pb.h"
#include "assay/v1/run_spec.pb.h"
#include "assay/v1/submission_service.pb.h"
#include "assay/v1/worker_service.pb.h"
#include "assay/v1/workload.pb.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"

namespace assay::api {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;

constexpr char kPath[] = "proto/api.lock";  // tests run in the root of the repository

using Lines = std::vector<std::string>;

std::string TypeOf(const FieldDescriptor& field) {
  if (field.message_type() != nullptr) return field.message_type()->full_name();
  if (field.enum_type() != nullptr) return field.enum_type()->full_name();
  return field.type_name();
}

std::string LabelOf(const FieldDescriptor& field) {
  if (field.is_repeated()) return "repeated";
  return field.has_optional_keyword() ? "optional" : "singular";
}

void AddEnum(const EnumDescriptor& type, Lines* lines) {
  for (int i = 0; i < type.value_count(); ++i) {
    lines->push_back(absl::StrCat(type.full_name(), ".", type.value(i)->name(), " = ",
                                  type.value(i)->number(), " enum"));
  }
}

void AddMessage(const Descriptor& type, Lines* lines) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    lines->push_back(absl::StrCat(field.full_name(), " = ", field.number(), " ", TypeOf(field), " ",
                                  LabelOf(field)));
  }
  for (int i = 0; i < type.enum_type_count(); ++i)
    AddEnum(*type.enum_type(i), lines);
  for (int i = 0; i < type.nested_type_count(); ++i)
    AddMessage(*type.nested_type(i), lines);
}

std::string MethodLine(const MethodDescriptor& method) {
  return absl::StrCat("rpc ", method.service()->full_name(), "/", method.name(), " (",
                      method.client_streaming() ? "stream " : "", method.input_type()->full_name(),
                      ") returns (", method.server_streaming() ? "stream " : "",
                      method.output_type()->full_name(), ")");
}

Lines CurrentLines() {
  Lines lines;
  for (const FileDescriptor* file :
       {v1::ServerConfig::descriptor()->file(), v1::SubmissionSpec::descriptor()->file(),
        v1::EngineChoices::descriptor()->file(), v1::FabricSpec::descriptor()->file(),
        v1::RunSpec::descriptor()->file(), v1::TrainerWorkload::descriptor()->file(),
        v1::CreateSubmissionRequest::descriptor()->file(), v1::EnrolRequest::descriptor()->file(),
        v1::Token::descriptor()->file(), v1::QueryColumn::descriptor()->file()}) {
    for (int i = 0; i < file->message_type_count(); ++i)
      AddMessage(*file->message_type(i), &lines);
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m)
        lines.push_back(MethodLine(*file->service(s)->method(m)));
    }
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

Lines Minus(const Lines& a, const Lines& b) {
  Lines result;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

TEST(ApiLockTest, NothingThatClientsUseChangesOrDisappears) {
  const Lines current = CurrentLines();
  if (std::getenv("ASSAY_WRITE_API_LOCK") != nullptr) {
    ASSERT_THAT(WriteFileAtomic(kPath, absl::StrCat(absl::StrJoin(current, "\n"), "\n")),
                assay::testing::IsOk());
  }
  const absl::StatusOr<std::string> text = ReadFile(kPath);
  ASSERT_THAT(text, assay::testing::IsOk());
  Lines locked = absl::StrSplit(*text, '\n', absl::SkipEmpty());
  std::sort(locked.begin(), locked.end());

  EXPECT_THAT(Minus(locked, current), ::testing::IsEmpty())
      << "these lines are promised to clients: undo the change, or use a new field number";
  EXPECT_THAT(Minus(current, locked), ::testing::IsEmpty())
      << "these lines are new: promise them with the command on top of this file";
}

}  // namespace
}  // namespace assay::api
