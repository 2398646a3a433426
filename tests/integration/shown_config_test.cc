// What of a configuration is shown to others, and what is not.

#include "server/shown_config.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Gives each text that there is, however deep, its own name.
void FillIn(Message* message) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = message->GetDescriptor()->field(i);
    if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
      FillIn(field->is_repeated() ? reflection.AddMessage(message, field)
                                  : reflection.MutableMessage(message, field));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      const std::string text = absl::StrCat("<", field->full_name(), ">");
      if (field->is_repeated()) {
        reflection.AddString(message, field, text);
        reflection.AddString(message, field, text);
      } else {
        reflection.SetString(message, field, text);
      }
    }
  }
}

// A field that is new is left out until somebody says, here and there, that it holds no secret.
TEST(ShownConfigTest, WhatIsNotKnownToBeHarmlessIsLeftOut) {
  v1::ServerConfig config;
  FillIn(&config);
  const ShownConfig shown = ShowConfig(config);
  EXPECT_THAT(
      shown.left_out,
      ElementsAre("launcher.slurm.options", "launcher.slurm.worker.enrolment_token",
                  "launcher.slurm.worker.trainer_environment",
                  "launcher.slurm.worker.ca_certificate", "launcher.slurm.worker.redfish_meter.url",
                  "launcher.slurm.profiles.options", "notify.command"));
  for (const char* secret :
       {"<assay.v1.WorkerConfig.enrolment_token>", "<assay.v1.SlurmConfig.options>",
        "<assay.v1.WorkerConfig.TrainerEnvironmentEntry.value>", "<assay.v1.RedfishMeter.url>"})
    EXPECT_THAT(shown.text, Not(HasSubstr(secret)));
  EXPECT_THAT(shown.text, HasSubstr("ca_key_path: \"<assay.v1.TlsConfig.ca_key_path>\""));
}

TEST(ShownConfigTest, OfAHookTheProgramIsShown) {
  v1::ServerConfig config;
  v1::NotifyConfig* const hook = config.add_notify();
  for (const char* word : {"/usr/bin/curl", "--header", "Authorization: Bearer abc"})
    hook->add_command(word);
  const ShownConfig shown = ShowConfig(config);
  EXPECT_THAT(shown.text, HasSubstr("command: \"/usr/bin/curl\""));
  EXPECT_THAT(shown.text, Not(HasSubstr("Bearer")));
  EXPECT_THAT(shown.left_out, ElementsAre("notify.command"));
}

}  // namespace
}  // namespace assay
