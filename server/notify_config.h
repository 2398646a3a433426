// The commands that are told of changes, as configured.

#ifndef SERVER_NOTIFY_CONFIG_H_
#define SERVER_NOTIFY_CONFIG_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "assay/v1/config.pb.h"

#include "common/clock.h"
#include "server/notify/notifier.h"
#include "server/runtime/runtime.h"

namespace assay {

// What is wrong with `notify`, a line each.
std::vector<std::string> NotifyProblems(const v1::ServerConfig& config);

// What will not work although the configuration holds, a line each: programs that are not there.
std::vector<std::string> NotifyWarnings(const v1::ServerConfig& config);

// nullptr if nobody is to be told. `clock` and `runtime` must outlive it. Errors of
// notify::Notifier::Start.
absl::StatusOr<std::unique_ptr<notify::Notifier>> StartNotifier(const v1::ServerConfig& config,
                                                                const Clock* clock,
                                                                runtime::Runtime* runtime);

}  // namespace assay

#endif  // SERVER_NOTIFY_CONFIG_H_
