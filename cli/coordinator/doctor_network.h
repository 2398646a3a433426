// What the doctor says of certificates, clocks and ports.

#ifndef CLI_COORDINATOR_DOCTOR_NETWORK_H_
#define CLI_COORDINATOR_DOCTOR_NETWORK_H_

#include <string>
#include <vector>

#include "absl/time/time.h"

#include "assay/v1/resources.pb.h"

#include "cli/coordinator/check.h"
#include "cli/terminal/environment.h"

namespace assay::cli {

// A certificate that ends at `end`: a warning in its last 30 days, a failure in its last 3.
//   whose: begins the sentence: "the CA's certificate"
Check CheckCertificateEnd(const std::string& name, const std::string& whose, absl::Time end,
                          const Environment& env, const std::string& remedy);

// The one that ends first of those with which nodes have called.
Check CheckNodeCertificates(const std::vector<v1::Worker>& workers, const Environment& env);

// This host's clock against the coordinator's, which said `theirs` between `before` and `after` of
// this host.
Check CheckOffset(absl::Time theirs, absl::Time before, absl::Time after);

// Whether the port of the coordinator is reached from this host, and speaks TLS.
Check CheckPort(const std::string& address);

// Whether the site at `url` is reached from this host, and how long its certificate lasts.
Check CheckSite(const std::string& url, const Environment& env);

}  // namespace assay::cli

#endif  // CLI_COORDINATOR_DOCTOR_NETWORK_H_
