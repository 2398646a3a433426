// What effects that concern the launcher come to, without threads. The result is a command to the
// core.

#ifndef SERVER_RUNTIME_LAUNCH_HANDLER_H_
#define SERVER_RUNTIME_LAUNCH_HANDLER_H_

#include <optional>

#include "server/core/command.h"
#include "server/core/effect.h"
#include "server/launch/launcher.h"

namespace assay::runtime {

// True if the effect is for LaunchHandler, false if it is for EffectHandler.
bool IsForLauncher(const core::Effect& effect);

// Asks `launcher` what the effect wants, and says what it answered; nullopt if it will say so
// later. Blocks as the launcher does.
std::optional<core::Command> AskLauncher(const core::Effect& effect, launch::Launcher* launcher);

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_LAUNCH_HANDLER_H_
