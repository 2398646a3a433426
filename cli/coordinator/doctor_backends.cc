#include "cli/coordinator/doctor_backends.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "cli/command/ask_program.h"
#include "cli/command/share.h"
#include "common/backend_names.h"
#include "common/file.h"

namespace assay::cli {
namespace {

constexpr char kGpuDriver[] = "/proc/driver/nvidia/version";

bool IsBackend(absl::string_view line) {
  return std::find(std::begin(kBackendNames), std::end(kBackendNames), line) !=
         std::end(kBackendNames);
}

}  // namespace

Check JudgeBackends(absl::string_view answer, bool has_gpu) {
  std::vector<absl::string_view> usable;
  std::string refusal, missing;
  for (const absl::string_view line : absl::StrSplit(answer, '\n', absl::SkipWhitespace())) {
    if (IsBackend(line)) usable.push_back(line);
    if (absl::StartsWith(line, "cuda: ")) refusal = std::string(line);
    if (absl::StrContains(line, " is missing: "))
      absl::StrAppend(&missing, missing.empty() ? "" : "; ", line);
  }
  const std::string names = absl::StrJoin(usable, ", ");
  if (usable.empty()) return {"backends", "fail", "assay-train can use none", std::string(answer)};
  if (!missing.empty()) return {"backends", "warn", names, missing};
  if (has_gpu && !refusal.empty())
    return {"backends", "warn", absl::StrCat(names, "; not this machine's GPU"), refusal};
  return {"backends", "ok", names};
}

void CheckBackends(const Environment& env, std::vector<Check>* checks) {
  const absl::StatusOr<std::string> trainer = SiblingProgram(env, "assay-train");
  if (!trainer.ok()) return;  // the check of programs says so
  const std::optional<std::string> answer = AskProgram({*trainer, "--backends"}, {});
  if (answer.has_value()) {
    checks->push_back(JudgeBackends(*answer, FileExists(kGpuDriver)));
  } else {
    checks->push_back({"backends", "warn", "assay-train does not say what it can use",
                       absl::StrCat(*trainer, " --backends")});
  }
}

}  // namespace assay::cli
