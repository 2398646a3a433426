#include "server/runtime/evidence_file.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/log.h"

namespace assay::runtime {

std::optional<std::string> EvidenceOf(absl::string_view name, int64_t bytes_max,
                                      const core::Run& run, const store::ArtifactStore& artifacts) {
  const auto found =
      std::find_if(run.artifacts.begin(), run.artifacts.end(),
                   [name](const core::ArtifactRef& file) { return file.file_name == name; });
  if (found == run.artifacts.end() || found->size_bytes > bytes_max) return std::nullopt;
  std::string text;
  const absl::Status read = artifacts.ReadVerified(
      found->sha256, [&text](absl::string_view piece) { absl::StrAppend(&text, piece); });
  if (read.ok()) return text;
  LOG(ERROR) << "run=" << run.id << " is judged without its " << name << ": " << read;
  return std::nullopt;
}

}  // namespace assay::runtime
