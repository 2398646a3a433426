// The site of a private coordinator: assay-web with a token and a certificate made for it.

#ifndef CLI_COORDINATOR_DEV_SITE_H_
#define CLI_COORDINATOR_DEV_SITE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "cli/command/context.h"
#include "common/client/client.h"
#include "common/process.h"

namespace assay::cli {

struct DevSiteOptions {
  std::string directory;       // of the coordinator, with its ca.crt and ca.key
  std::string listen_address;  // 127.0.0.1:8443
  std::string server_address;  // of the coordinator
  bool ends_with_this = true;  // when this process ends, however it does
  absl::Duration lifetime;     // of its token and certificate
};

// Makes the token of the public and the certificate, starts the site and waits until it listens.
// NOT_FOUND if assay-web is not installed beside this program; otherwise what went wrong, with its
// log's path.
absl::StatusOr<ProcessId> StartDevSite(const Context& context, const client::Client& client,
                                       const DevSiteOptions& options);

}  // namespace assay::cli

#endif  // CLI_COORDINATOR_DEV_SITE_H_
