#include "server/runtime/effects.h"

#include <optional>
#include <string>
#include <utility>

#include "common/log.h"
#include "server/runtime/launch_handler.h"

namespace assay::runtime {
namespace {

// Far above the number of runs and submissions that can wait for a verdict at once.
constexpr size_t kEffectsMax = 1 << 20;

}  // namespace

Effects::Effects(EffectHandler handler)
    : handler_(std::move(handler)),
      thread_("effects", kEffectsMax),
      launch_thread_("launch", kEffectsMax) {}

Effects::~Effects() {
  Stop();
}

void Effects::Stop() {
  StopLaunching();
  thread_.Stop();
}

void Effects::StartLaunching(launch::Launcher* launcher, core::LauncherStarted started) {
  {
    MutexLock lock(&mutex_);
    launcher_ = launcher;
  }
  post_(core::Command{std::string(core::kCoordinator), std::move(started)});
}

void Effects::StopLaunching() {
  launch_thread_.Stop();
  MutexLock lock(&mutex_);
  launcher_ = nullptr;
}

std::optional<core::Command> Effects::CarryOut(const core::Effect& effect) {
  if (!IsForLauncher(effect)) return handler_.Handle(effect);
  launch::Launcher* launcher = nullptr;
  {
    MutexLock lock(&mutex_);
    launcher = launcher_;
  }
  if (launcher == nullptr) return std::nullopt;
  return AskLauncher(effect, launcher);
}

void Effects::SetPost(Post post) {
  post_ = std::move(post);
}

void Effects::Run(std::vector<core::Effect> effects) {
  for (core::Effect& effect : effects) {
    TaskThread* const thread = IsForLauncher(effect) ? &launch_thread_ : &thread_;
    const bool is_taken = thread->Post([this, effect = std::move(effect)] {
      std::optional<core::Command> result = CarryOut(effect);
      if (result.has_value()) post_(*std::move(result));
    });
    // Only while stopping; the next start derives it from the state again.
    if (!is_taken) LOG(WARNING) << "effect left for the next start";
  }
}

}  // namespace assay::runtime
