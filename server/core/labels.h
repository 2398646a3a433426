// Labels of workers: their agents tell some, operators give others, and placement looks at both.

#ifndef SERVER_CORE_LABELS_H_
#define SERVER_CORE_LABELS_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "server/core/worker.h"

namespace assay::core {

// The value of a label, an operator's before its agent's; null if it has none.
const std::string* FindLabel(const Worker& worker, const std::string& name);

// All its labels, by name.
std::map<std::string, std::string> LabelsOf(const Worker& worker);

// Gives a worker labels, in the place of those of the same name that its agent tells, and takes
// away what operators have given it before. Runs go on; placement of the next looks at them. Reply:
// Worker. Repeating it changes nothing. NOT_FOUND; INVALID_ARGUMENT for a name that is none or that
// a launcher sets, and for an empty value; RESOURCE_EXHAUSTED for more than kWorkerLabelCountMax.
struct LabelWorker {
  std::string worker;
  std::map<std::string, std::string> labels;
  std::vector<std::string> removed = {};
};
inline constexpr size_t kWorkerLabelCountMax = 64;

// All labels that operators have given it, in the place of those before.
struct WorkerLabelled {
  static constexpr absl::string_view kType = "WorkerLabelled";
  static constexpr int kVersion = 1;
  std::string worker;
  std::map<std::string, std::string> labels;
  bool operator==(const WorkerLabelled&) const = default;
};

}  // namespace assay::core

#endif  // SERVER_CORE_LABELS_H_
