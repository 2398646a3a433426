// A private coordinator on this host: keys, database and agents in one directory that goes away
// with it.

#ifndef CLI_COORDINATOR_DEV_COORDINATOR_H_
#define CLI_COORDINATOR_DEV_COORDINATOR_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "cli/command/context.h"
#include "common/client/client.h"
#include "common/file.h"
#include "common/process.h"
#include "common/rpc/endpoint.h"

namespace assay::cli {

// The directory of this user's private coordinator, made with mode 0700 if it is missing.
// PERMISSION_DENIED if it belongs to somebody else or others may look into it.
absl::StatusOr<std::string> PrepareDevDirectory(const Environment& environment);

// What becomes of a private coordinator when this program ends.
enum class DevLife {
  kEndsWithThis,  // it ends, too, even if this program is killed
  kMayBeKept,     // if Detach was called it goes on
};

class DevCoordinator {
 public:
  // Starts assayd, its agents and its site, and waits until they answer. FAILED_PRECONDITION if one
  // runs already; otherwise what went wrong, with the end of its log. Without assay-web beside this
  // program it has no site, and the user is told.
  static absl::StatusOr<std::unique_ptr<DevCoordinator>> Start(Context* context, int worker_count,
                                                               DevLife life);

  // Stops it and removes its directory, unless Detach was called.
  ~DevCoordinator();

  const Endpoint& endpoint() const { return endpoint_; }
  const client::Client& client() const { return *client_; }
  const std::string& listen_address() const { return listen_address_; }
  const std::string& directory() const { return directory_; }
  // https://HOST:PORT; empty if there is no site.
  std::string site_url() const;

  // Blocks until assayd ends by itself (an error with the end of its log) or Ctrl-C comes (OK).
  absl::Status WaitForEnd(Interrupt* interrupt);

  // Leaves it running when this object goes.
  void Detach() { is_detached_ = true; }

 private:
  DevCoordinator() = default;
  absl::Status Spawn(Context* context, int worker_count, DevLife life);
  absl::Status StartSite(Context* context, DevLife life);
  absl::Status WaitUntilReady(Context* context, int worker_count);
  absl::Status Ended(int exit_code) const;

  std::string directory_;
  std::string listen_address_;
  Endpoint endpoint_;
  std::unique_ptr<client::Client> client_;
  ProcessId process_;
  bool is_running_ = false;
  std::string site_address_;
  ProcessId site_process_;
  bool has_site_ = false;
  bool is_detached_ = false;
};

// Stops the private coordinator that runs in the background and removes its directory. NOT_FOUND if
// none runs.
absl::Status StopDevCoordinator(const Environment& environment);

}  // namespace assay::cli

#endif  // CLI_COORDINATOR_DEV_COORDINATOR_H_
