#include "server/launch/registry.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/status.h"
#include "server/launch/attach.h"

namespace assay::launch {
namespace {

struct Row {
  absl::string_view kind;
  std::unique_ptr<Launcher> (*make)(const LaunchOptions& options);
};

constexpr auto kRows = std::to_array<Row>({
    {"attach",
     [](const LaunchOptions&) -> std::unique_ptr<Launcher> {
       return std::make_unique<AttachLauncher>();
     }},
    {core::kLocalLauncher,
     [](const LaunchOptions& options) -> std::unique_ptr<Launcher> {
       return std::make_unique<LocalLauncher>(options.local);
     }},
    {"slurm",
     [](const LaunchOptions& options) -> std::unique_ptr<Launcher> {
       return std::make_unique<slurm::SlurmLauncher>(options.slurm);
     }},
});

// nullptr: there is none.
const Row* FindRow(absl::string_view kind) {
  const absl::string_view wanted = kind.empty() ? "attach" : kind;
  for (const Row& row : kRows)
    if (wanted == row.kind) return &row;
  return nullptr;
}

}  // namespace

std::vector<std::string> LauncherKinds() {
  std::vector<std::string> kinds;
  for (const Row& row : kRows)
    kinds.emplace_back(row.kind);
  return kinds;
}

absl::Status CheckLauncherKind(absl::string_view kind) {
  if (FindRow(kind) != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("unknown launcher \"", kind, "\": choose ",
                                                 absl::StrJoin(LauncherKinds(), " or ")));
}

absl::StatusOr<std::unique_ptr<Launcher>> MakeLauncher(absl::string_view kind,
                                                       const LaunchOptions& options) {
  RETURN_IF_ERROR(CheckLauncherKind(kind));
  return FindRow(kind)->make(options);
}

}  // namespace assay::launch
