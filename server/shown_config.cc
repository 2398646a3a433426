#include "server/shown_config.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace assay {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// By message and field. What is not here is not shown: options of commands, environments, tokens,
// addresses that may carry a password.
const char* const kShown[] = {
    "ServerConfig.data_directory",
    "ServerConfig.listen_address",
    "ServerConfig.unix_socket_path",
    "ServerConfig.round_paths",
    "ServerConfig.web_url",
    "ServerConfig.metrics_address",
    "PreflightCheck.check",
    "SwitchPower.name",
    "LocalUser.principal",
    "LocalUser.role",
    "LocalUser.organization",
    "SchedulerConfig.OrganizationRunLimitsEntry.key",
    "NotifyConfig.name",
    "NotifyConfig.on",
    "TlsConfig.ca_certificate_path",
    "TlsConfig.ca_key_path",
    "TlsConfig.certificate_path",
    "TlsConfig.key_path",
    "LauncherConfig.kind",
    "LauncherConfig.worker_program",
    "SlurmConfig.shared_directory",
    "SlurmConfig.server_address",
    "SlurmConfig.command_directory",
    "SlurmConfig.munge_socket",
    "SlurmProfile.name",
    "SlurmProfile.partition",
    "SlurmProfile.account",
    "SlurmProfile.AccountsEntry.key",
    "SlurmProfile.AccountsEntry.value",
    "SlurmProfile.qos",
    "SlurmProfile.constraint",
    "SlurmProfile.gres",
    "SlurmProfile.reservation",
    "WorkerConfig.name",
    "WorkerConfig.server_address",
    "WorkerConfig.data_directory",
    "WorkerConfig.ca_certificate_path",
    "WorkerConfig.enrolment_token_path",
    "WorkerConfig.stage_directory",
    "WorkerConfig.trainer_program",
    "WorkerConfig.LabelsEntry.key",
    "WorkerConfig.LabelsEntry.value",
    "WorkerConfig.rendezvous_host",
    "WorkerConfig.TrainerEnvironmentEntry.key",
    "WorkerConfig.run_user",
    "WorkerConfig.step_user",
    "WorkerConfig.software_directories",
    "WorkerConfig.privileged_socket",
    "NodeCacheConfig.directory",
    "MeterComparison.meter",
    "MeterComparison.with",
    "RedfishMeter.credentials_path",
    "RedfishMeter.ca_certificate_path",
    "SnmpMeter.address",
    "SnmpMeter.power_oids",
    "SnmpMeter.credentials_path",
    "SnmpMeter.node",
    "MungeEnrolment.socket",
};
constexpr char kLeftOut[] = "(left out)";

bool IsShown(const FieldDescriptor& field) {
  absl::string_view name = field.full_name();
  absl::ConsumePrefix(&name, "assay.v1.");
  return std::find(std::begin(kShown), std::end(kShown), name) != std::end(kShown);
}

class Redactor {
 public:
  explicit Redactor(std::vector<std::string>* left_out) : left_out_(*left_out) {}

  void Walk(const std::string& path, Message* message) {
    std::vector<const FieldDescriptor*> fields;
    message->GetReflection()->ListFields(*message, &fields);
    for (const FieldDescriptor* field : fields) {
      // An entry of a map is its map's.
      const bool is_entry = message->GetDescriptor()->options().map_entry();
      const std::string name =
          is_entry ? path : absl::StrCat(path, path.empty() ? "" : ".", field->name());
      if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
        WalkInto(name, field, message);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && !IsShown(*field)) {
        LeaveOut(name, field, message);
      }
    }
  }

 private:
  void WalkInto(const std::string& name, const FieldDescriptor* field, Message* message) {
    const Reflection& reflection = *message->GetReflection();
    if (!field->is_repeated()) return Walk(name, reflection.MutableMessage(message, field));
    for (int i = 0; i < reflection.FieldSize(*message, field); ++i)
      Walk(name, reflection.MutableRepeatedMessage(message, field, i));
  }

  void LeaveOut(const std::string& name, const FieldDescriptor* field, Message* message) {
    const Reflection& reflection = *message->GetReflection();
    // A hook's program is a path; its arguments may be anything.
    const int first = field->full_name() == "assay.v1.NotifyConfig.command" ? 1 : 0;
    if (field->is_repeated()) {
      if (reflection.FieldSize(*message, field) <= first) return;
      for (int i = first; i < reflection.FieldSize(*message, field); ++i)
        reflection.SetRepeatedString(message, field, i, kLeftOut);
    } else {
      reflection.SetString(message, field, kLeftOut);
    }
    if (std::find(left_out_.begin(), left_out_.end(), name) == left_out_.end())
      left_out_.push_back(name);
  }

  std::vector<std::string>& left_out_;
};

}  // namespace

ShownConfig ShowConfig(const v1::ServerConfig& config) {
  ShownConfig shown;
  v1::ServerConfig copy = config;
  Redactor(&shown.left_out).Walk("", &copy);
  google::protobuf::TextFormat::PrintToString(copy, &shown.text);
  return shown;
}

}  // namespace assay
