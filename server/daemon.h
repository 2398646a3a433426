// The coordinator's life, from a configuration to an orderly end.

#ifndef SERVER_DAEMON_H_
#define SERVER_DAEMON_H_

#include <csignal>

#include "absl/status/status.h"

#include "assay/v1/config.pb.h"

namespace assay {

// Serves until one of `signals`, which every thread must block, arrives. Then: no new commands, the
// last commit, an answer to every call, the end. Errors are why it could not begin to serve.
//   is_loss_accepted: goes on although acknowledged events are missing (server/store/store.h).
absl::Status Serve(const v1::ServerConfig& config, const sigset_t& signals, bool is_loss_accepted);

}  // namespace assay

#endif  // SERVER_DAEMON_H_
