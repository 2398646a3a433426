// assay run replay: what a run did, again.

#ifndef CLI_RUN_RUN_REPLAY_H_
#define CLI_RUN_RUN_REPLAY_H_

#include <cstdint>

#include "absl/time/time.h"

#include "cli/command/command.h"

namespace assay::cli {

// How long to wait between two events of a run that is replayed at `speed` times its own: never
// longer than it took, and not at all where a stamp is missing (0) or lies before the one that came
// first.
absl::Duration ReplayPause(int64_t before_us, int64_t at_us, int64_t speed);

Command RunReplayCommand();

}  // namespace assay::cli

#endif  // CLI_RUN_RUN_REPLAY_H_
