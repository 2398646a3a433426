// The file of a run that names other people's processes: one for each node, foreign_0.jsonl
// (common/telemetry/foreign.h). Whoever lists or sends files of a run asks here who may have them.

#ifndef COMMON_FOREIGN_FILE_H_
#define COMMON_FOREIGN_FILE_H_

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace assay {

// This, the rank of the node, ".jsonl".
inline constexpr char kForeignPrefix[] = "foreign_";

// True if operators alone may know that a run has a file of this name.
inline bool IsForOperators(absl::string_view file_name) {
  return absl::StartsWith(file_name, kForeignPrefix);
}

}  // namespace assay

#endif  // COMMON_FOREIGN_FILE_H_
