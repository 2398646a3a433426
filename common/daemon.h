// What programs that serve do at their start.

#ifndef COMMON_DAEMON_H_
#define COMMON_DAEMON_H_

#include <csignal>
#include <cstdint>

namespace assay {

// A descriptor for each connection of thousands.
inline constexpr uint64_t kDaemonDescriptors = 65'536;

// Blocks SIGTERM and SIGINT in this thread and those that it makes, so that sigwait on the result
// gets them, and ignores SIGPIPE. Before any thread is made.
sigset_t BlockEndSignals();

// Lets this process have `wanted` descriptors, or as many as its hard limit allows: then it logs a
// warning.
void RaiseDescriptorLimit(uint64_t wanted);

}  // namespace assay

#endif  // COMMON_DAEMON_H_
