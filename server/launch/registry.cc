#include "server/launch/registry.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "server/launch/attach.h"

namespace assay::launch {
namespace {

struct Row {
  const char* kind;
  std::unique_ptr<Launcher> (*make)(const LocalOptions& local);
};

constexpr auto kRows = std::to_array<Row>({
    {"attach",
     [](const LocalOptions&) -> std::unique_ptr<Launcher> {
       return std::make_unique<AttachLauncher>();
     }},
    {"local",
     [](const LocalOptions& local) -> std::unique_ptr<Launcher> {
       return std::make_unique<LocalLauncher>(local);
     }},
});

}  // namespace

std::vector<std::string> LauncherKinds() {
  std::vector<std::string> kinds;
  for (const Row& row : kRows)
    kinds.emplace_back(row.kind);
  return kinds;
}

absl::StatusOr<std::unique_ptr<Launcher>> MakeLauncher(absl::string_view kind,
                                                       const LocalOptions& local) {
  const absl::string_view wanted = kind.empty() ? "attach" : kind;
  for (const Row& row : kRows) {
    if (wanted == row.kind) return row.make(local);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown launcher \"", kind, "\": choose ",
                                                 absl::StrJoin(LauncherKinds(), " or ")));
}

}  // namespace assay::launch
