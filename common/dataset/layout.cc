#include "common/dataset/layout.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/status.h"

namespace assay::dataset {

absl::string_view SplitName(Split split) {
  switch (split) {
    case Split::kTrain:
      return "train";
    case Split::kValidation:
      return "validation";
  }
  return "";
}

absl::StatusOr<std::vector<std::string>> ListSamples(const std::string& dir, Split split,
                                                     absl::string_view suffix) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   ListDirectory(JoinPath(dir, SplitName(split))));
  std::vector<std::string> samples;
  samples.reserve(names.size());
  for (const std::string& name : names) {
    if (absl::StartsWith(name, ".") || !absl::EndsWith(name, suffix)) continue;
    samples.push_back(absl::StrCat(SplitName(split), "/", name));
  }
  return samples;
}

absl::StatusOr<std::vector<std::string>> ListSamples(const std::string& dir, Split split,
                                                     int64_t count, absl::string_view suffix) {
  ASSIGN_OR_RETURN(std::vector<std::string> samples, ListSamples(dir, split, suffix));
  if (static_cast<int64_t>(samples.size()) < count)
    return absl::FailedPreconditionError(
        absl::StrCat(JoinPath(dir, SplitName(split)), " holds ", samples.size(),
                     " samples, but the configuration asks for ", count,
                     ": lower the number of samples or complete the dataset"));
  samples.resize(static_cast<size_t>(count));
  return samples;
}

}  // namespace assay::dataset
