#include "server/runtime/launch_handler.h"

#include <string>
#include <utility>
#include <variant>

#include "common/log.h"

namespace assay::runtime {
namespace {

using Outcome = core::LaunchReported::Outcome;
using Report = std::optional<core::LaunchReported>;

Report Ask(const core::AcquireNodes& effect, launch::Launcher* launcher) {
  const core::AllocationId id = effect.allocation.id;
  absl::StatusOr<std::optional<launch::Grant>> grant = launcher->Acquire(effect.allocation);
  if (!grant.ok()) {
    LOG(WARNING) << "no nodes allocation=" << id << " status=" << Quoted(grant.status());
    return core::LaunchReported{.allocation = id, .reason = std::string(grant.status().message())};
  }
  if (!grant->has_value()) return std::nullopt;
  return core::LaunchReported{.allocation = id,
                              .outcome = Outcome::kGranted,
                              .workers = std::move((*grant)->workers),
                              .deadline_us = (*grant)->deadline_us};
}

Report Ask(const core::ReleaseNodes& effect, launch::Launcher* launcher) {
  const absl::StatusOr<bool> released = launcher->Release(effect.allocation);
  if (!released.ok()) {
    LOG(WARNING) << "nodes not released allocation=" << effect.allocation
                 << " status=" << Quoted(released.status());
    return core::LaunchReported{.allocation = effect.allocation,
                                .reason = std::string(released.status().message())};
  }
  if (!*released) return std::nullopt;
  return core::LaunchReported{.allocation = effect.allocation, .outcome = Outcome::kEnded};
}

// Verdicts are not the launcher's.
Report Ask(const core::CheckLog&, launch::Launcher*) {
  return std::nullopt;
}
Report Ask(const core::ScoreSubmission&, launch::Launcher*) {
  return std::nullopt;
}

}  // namespace

bool IsForLauncher(const core::Effect& effect) {
  return std::holds_alternative<core::AcquireNodes>(effect) ||
         std::holds_alternative<core::ReleaseNodes>(effect);
}

std::optional<core::Command> AskLauncher(const core::Effect& effect, launch::Launcher* launcher) {
  Report report = std::visit([launcher](const auto& what) { return Ask(what, launcher); }, effect);
  if (!report.has_value()) return std::nullopt;
  return core::Command{std::string(core::kCoordinator), *std::move(report)};
}

}  // namespace assay::runtime
