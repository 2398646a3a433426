#include "server/runtime/effects.h"

#include <optional>
#include <utility>

#include "common/log.h"

namespace assay::runtime {
namespace {

// Far above the number of runs and submissions that can wait for a verdict at once.
constexpr size_t kEffectsMax = 1 << 20;

}  // namespace

Effects::Effects(EffectHandler handler)
    : handler_(std::move(handler)), thread_("effects", kEffectsMax) {}

Effects::~Effects() {
  Stop();
}

void Effects::Stop() {
  thread_.Stop();
}

void Effects::SetPost(Post post) {
  post_ = std::move(post);
}

void Effects::Run(std::vector<core::Effect> effects) {
  for (core::Effect& effect : effects) {
    const bool is_taken = thread_.Post([this, effect = std::move(effect)] {
      std::optional<core::Command> result = handler_.Handle(effect);
      if (result.has_value()) post_(*std::move(result));
    });
    // Only while stopping; the next start derives it from the state again.
    if (!is_taken) LOG(WARNING) << "effect left for the next start";
  }
}

}  // namespace assay::runtime
