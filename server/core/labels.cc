#include "server/core/labels.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/core/allocation.h"
#include "server/core/decide.h"

namespace assay::core {
namespace {

// Names go onto command lines and into files, values into both.
absl::Status CheckLabel(const std::string& name, const std::string& value) {
  constexpr size_t kLabelBytesMax = 256;
  if (name == kNodeLabel || name == kAllocationLabel)
    return absl::InvalidArgumentError(
        absl::StrCat("label ", name, " is a launcher's to set; choose another name"));
  const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::StrContains("._-/", absl::string_view(&c, 1));
  });
  const bool is_value = !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c));
  });
  if (is_name && is_value && name.size() <= kLabelBytesMax && value.size() <= kLabelBytesMax)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "label \"", absl::CHexEscape(name.substr(0, kLabelBytesMax)), "\": give a name of letters, ",
      "digits, '.', '_', '-' and '/' and a printable value, each of 1 to ", kLabelBytesMax,
      " bytes"));
}

}  // namespace

const std::string* FindLabel(const Worker& worker, const std::string& name) {
  for (const auto* const labels : {&worker.operator_labels, &worker.description.labels})
    if (const auto it = labels->find(name); it != labels->end()) return &it->second;
  return nullptr;
}

std::map<std::string, std::string> LabelsOf(const Worker& worker) {
  std::map<std::string, std::string> labels = worker.operator_labels;
  labels.insert(worker.description.labels.begin(), worker.description.labels.end());
  return labels;
}

absl::StatusOr<Decision> Decide(const Context& context, const LabelWorker& command) {
  const auto found = context.state.workers.find(command.worker);
  if (found == context.state.workers.end())
    return absl::NotFoundError(absl::StrCat("there is no worker ", command.worker));
  const Worker* const worker = &found->second;
  std::map<std::string, std::string> labels = worker->operator_labels;
  for (const std::string& name : command.removed)
    labels.erase(name);
  for (const auto& [name, value] : command.labels) {
    RETURN_IF_ERROR(CheckLabel(name, value));
    labels[name] = value;
  }
  if (labels.size() > kWorkerLabelCountMax)
    return absl::ResourceExhaustedError(absl::StrCat(
        "worker ", worker->name, " can have ", kWorkerLabelCountMax, " labels; remove one first"));
  Decision decision{.reply = *worker};
  if (labels != worker->operator_labels)
    decision.events.push_back(WorkerLabelled{.worker = worker->name, .labels = std::move(labels)});
  return decision;
}

}  // namespace assay::core
