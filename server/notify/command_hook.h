// A hook that starts a program for each notice.

#ifndef SERVER_NOTIFY_COMMAND_HOOK_H_
#define SERVER_NOTIFY_COMMAND_HOOK_H_

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "server/notify/hook.h"

namespace assay::notify {

// The program gets the document on stdin, an environment of PATH and LANG alone, / as its
// directory, and no descriptor but stdin, stdout and stderr, of which the latter two are the
// daemon's. Exit code 0 means that it was told.
class CommandHook final : public Hook {
 public:
  //   argv: argv[0] is the program's absolute path; there is no shell.
  //   timeout: after which the program and its process group are killed.
  //   is_stopped: once it is true, what runs is killed and nothing is started; must outlive this.
  CommandHook(std::vector<std::string> argv, absl::Duration timeout,
              const std::atomic<bool>* is_stopped);

  absl::Status Deliver(const std::string& document) override;

 private:
  const std::vector<std::string> argv_;
  const absl::Duration timeout_;
  const std::atomic<bool>& is_stopped_;
};

}  // namespace assay::notify

#endif  // SERVER_NOTIFY_COMMAND_HOOK_H_
