#include "common/package/system_description.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "common/json_value.h"
#include "common/package/findings.h"
#include "common/package/json_file.h"
#include "common/package/results_tree.h"
#include "common/package/text.h"

namespace assay::package {
namespace {

constexpr const char* kRequired[] = {"submitter",
                                     "division",
                                     "status",
                                     "system_name",
                                     "number_of_nodes",
                                     "host_processors_per_node",
                                     "host_processor_model_name",
                                     "host_processor_core_count",
                                     "host_processor_vcpu_count",
                                     "host_processor_frequency",
                                     "host_processor_caches",
                                     "host_processor_interconnect",
                                     "host_memory_capacity",
                                     "host_storage_type",
                                     "host_storage_capacity",
                                     "host_networking",
                                     "host_networking_topology",
                                     "host_memory_configuration",
                                     "accelerators_per_node",
                                     "accelerator_model_name",
                                     "accelerator_host_interconnect",
                                     "accelerator_frequency",
                                     "accelerator_on-chip_memories",
                                     "accelerator_memory_configuration",
                                     "accelerator_memory_capacity",
                                     "accelerator_interconnect",
                                     "accelerator_interconnect_topology",
                                     "cooling",
                                     "hw_notes",
                                     "framework",
                                     "other_software_stack",
                                     "operating_system",
                                     "sw_notes"};

// The checker joins these to one line of text, and dies of anything else.
constexpr const char* kTexts[] = {"submitter",
                                  "system_name",
                                  "host_processor_model_name",
                                  "host_processor_core_count",
                                  "accelerator_model_name",
                                  "accelerators_per_node",
                                  "framework"};

constexpr const char* kNumbers[] = {"number_of_nodes", "host_processors_per_node",
                                    "accelerators_per_node"};

// Members that may not be left empty, by the submission rules.
constexpr const char* kAnswers[] = {"submitter",
                                    "division",
                                    "status",
                                    "system_name",
                                    "host_processor_model_name",
                                    "host_memory_capacity",
                                    "framework",
                                    "operating_system"};

// Every wording that was published or is demanded by a usage.
constexpr const char* kStatuses[] = {"available",
                                     "available cloud",
                                     "available in cloud",
                                     "available on-premise",
                                     "available on premise",
                                     "cloud",
                                     "onprem",
                                     "preview",
                                     "rdi",
                                     "research",
                                     "research, development, or internal",
                                     "research, development, or internal (rdi)"};

class Examination {
 public:
  Examination(const JsonValue& description, const DescriptionPlace& place)
      : description_(description), place_(place) {}

  std::vector<rules::Finding> Run() {
    for (const char* member : kRequired)
      if (description_.Find(member) == nullptr) Add("R-DESC-002", member, "no such member");
    for (const char* member : kTexts)
      CheckIsText(member);
    for (const char* member : kNumbers)
      CheckIsNumber(member);
    CheckWords();
    CheckAnswers();
    CheckNames();
    return std::move(findings_);
  }

 private:
  void Add(absl::string_view rule, const char* member, absl::string_view found) {
    findings_.push_back(Violation(rule, found));
    findings_.back().key = member;
    absl::StrAppend(&findings_.back().error_class, ":", member);
  }

  std::string TextOf(const char* member) const { return MemberText(description_, member); }
  bool IsText(const char* member) const {
    const JsonValue* value = description_.Find(member);
    return value != nullptr && value->AsString() != nullptr;
  }

  void CheckIsText(const char* member) {
    const JsonValue* value = description_.Find(member);
    if (value != nullptr && value->AsString() == nullptr)
      Add("R-DESC-003", member, DumpJson(*value).substr(0, 80));
  }

  void CheckIsNumber(const char* member) {
    if (!IsText(member)) return;  // an error already, or a plain number, which is fine
    if (!PythonInt(TextOf(member)).has_value())
      Add("R-DESC-004", member, absl::StrCat("\"", TextOf(member), "\""));
  }

  void CheckWords() {
    const std::string division = TextOf("division");
    if (description_.Find("division") != nullptr && division != "closed" && division != "open")
      Add("R-DESC-005", "division", absl::StrCat("\"", division, "\""));
    const std::string status = absl::AsciiStrToLower(TextOf("status"));
    const bool is_known =
        std::find(std::begin(kStatuses), std::end(kStatuses), status) != std::end(kStatuses);
    if (!status.empty() && !is_known)
      Add("R-DESC-006", "status", absl::StrCat("\"", TextOf("status"), "\""));
  }

  void CheckAnswers() {
    for (const char* member : kAnswers)
      if (IsText(member) && absl::StripAsciiWhitespace(TextOf(member)).empty())
        Add("R-DESC-007", member, "an empty text");
    const bool has_cores = !TextOf("host_processor_core_count").empty() ||
                           !TextOf("host_processor_vcpu_count").empty();
    if (IsText("host_processor_core_count") && !has_cores)
      Add("R-DESC-007", "host_processor_core_count", "neither cores nor vcpus");
    const bool has_accelerators = PythonInt(TextOf("accelerators_per_node")).value_or("0") != "0";
    if (has_accelerators && IsText("accelerator_model_name") &&
        TextOf("accelerator_model_name").empty())
      Add("R-DESC-007", "accelerator_model_name", "accelerators without a name");
  }

  void CheckNames() {
    const std::string system = TextOf("system_name");
    if (!place_.system.empty() && !system.empty() && system != place_.system)
      Add("R-DESC-008", "system_name", absl::StrCat("\"", system, "\""));
    const std::string submitter = TextOf("submitter");
    const std::string& folder = place_.organization;
    if (!folder.empty() && !submitter.empty() && submitter != folder &&
        PathPart(submitter) != folder)
      Add("R-DESC-009", "submitter", absl::StrCat("\"", submitter, "\""));
  }

  const JsonValue& description_;
  const DescriptionPlace& place_;
  std::vector<rules::Finding> findings_;
};

}  // namespace

std::span<const char* const> RequiredSystemMembers() {
  return kRequired;
}

std::string PathPart(absl::string_view text) {
  std::string part(text);
  for (char& c : part)
    if (c == '/' || c == ' ' || static_cast<unsigned char>(c) < 0x20) c = '_';
  if (part.empty() || part[0] == '.') return absl::StrCat("_", part);
  return part;
}

std::vector<rules::Finding> CheckSystemDescription(absl::string_view bytes,
                                                   const DescriptionPlace& place) {
  const absl::StatusOr<JsonValue> json = ParseJsonFile(bytes);
  if (!json.ok()) return {Violation("R-DESC-001", std::string(json.status().message()))};
  if (json->AsObject() == nullptr)
    return {Violation("R-DESC-001",
                      absl::StrCat("JSON, but no object: ", DumpJson(*json).substr(0, 40)))};
  return Examination(*json, place).Run();
}

}  // namespace assay::package
