// What assay-hold and who starts it agree upon.

#ifndef WORKER_AGENT_HOLD_H_
#define WORKER_AGENT_HOLD_H_

namespace assay::agent {

inline constexpr int kHoldFd = 3;          // open for writing when it starts
inline constexpr char kHoldIsReady = '1';  // written there once the sandbox stands

}  // namespace assay::agent

#endif  // WORKER_AGENT_HOLD_H_
