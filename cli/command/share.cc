#include "cli/command/share.h"

#include <climits>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/file.h"
#include "common/status.h"

namespace assay::cli {

absl::StatusOr<std::string> ShareDirectory(const Environment& environment, absl::string_view name) {
  // bin/ of an installation, bin/ of a build in <source>/build/<preset>.
  std::vector<std::string> candidates;
  for (const char* base : {"../share/assay", "../../../deploy", "../../deploy"})
    candidates.push_back(JoinPath(JoinPath(environment.program_directory, base), name));
  for (const std::string& candidate : candidates) {
    char resolved[PATH_MAX];
    if (realpath(candidate.c_str(), resolved) != nullptr) return std::string(resolved);
  }
  return absl::NotFoundError(absl::StrCat("cannot find the directory '", name,
                                          "', which comes with these programs, in ",
                                          absl::StrJoin(candidates, ", ")));
}

absl::StatusOr<std::vector<std::string>> FilesIn(const std::string& directory,
                                                 absl::string_view suffix) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  std::vector<std::string> paths;
  for (const std::string& name : names)
    if (absl::EndsWith(name, suffix)) paths.push_back(JoinPath(directory, name));
  return paths;
}

absl::StatusOr<std::string> SiblingProgram(const Environment& environment, absl::string_view name) {
  const std::string path = JoinPath(environment.program_directory, name);
  if (FileExists(path)) return path;
  return absl::NotFoundError(
      absl::StrCat(path, " is missing: build or install all of Assay's programs side by side"));
}

}  // namespace assay::cli
