// The launchers by name, as in LauncherConfig.kind. To add one: a file and a row.

#ifndef SERVER_LAUNCH_REGISTRY_H_
#define SERVER_LAUNCH_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/launch/local.h"
#include "server/launch/slurm/slurm_launcher.h"

namespace assay::launch {

// The names, sorted.
std::vector<std::string> LauncherKinds();

// OK if there is a launcher named `kind`; empty means "attach". INVALID_ARGUMENT for another, with
// the list.
absl::Status CheckLauncherKind(absl::string_view kind);

// What launchers need; only that of the one that is made is looked at.
struct LaunchOptions {
  LocalOptions local;
  slurm::SlurmOptions slurm;
};

// The launcher named `kind`. Errors of CheckLauncherKind.
absl::StatusOr<std::unique_ptr<Launcher>> MakeLauncher(absl::string_view kind,
                                                       const LaunchOptions& options);

}  // namespace assay::launch

#endif  // SERVER_LAUNCH_REGISTRY_H_
