#include "worker/agent/fences.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/file.h"
#include "common/status.h"

namespace assay::agent {

absl::StatusOr<std::map<std::string, int64_t>> LoadFences(const std::string& path) {
  std::map<std::string, int64_t> fences;
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (text.status().code() == absl::StatusCode::kNotFound) return fences;
  RETURN_IF_ERROR(text.status());
  for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, ' ');
    int64_t generation = 0;
    if (fields.size() != 2 || !absl::SimpleAtoi(fields[1], &generation))
      return absl::DataLossError(absl::StrCat(path, ": not a fence: \"", line, "\""));
    fences[fields[0]] = generation;
  }
  return fences;
}

absl::Status StoreFences(const std::string& path, const std::map<std::string, int64_t>& fences) {
  std::string text;
  for (const auto& [run, generation] : fences)
    absl::StrAppend(&text, run, " ", generation, "\n");
  return WriteFileAtomic(path, text);
}

}  // namespace assay::agent
