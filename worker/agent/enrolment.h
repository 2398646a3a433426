// Who this worker is to the coordinator: a key made here, and a certificate for it, got once for a
// one-time token or, on a node of a Slurm job, by munge.

#ifndef WORKER_AGENT_ENROLMENT_H_
#define WORKER_AGENT_ENROLMENT_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "assay/v1/config.pb.h"

#include "common/clock.h"
#include "common/rpc/channel.h"

namespace assay::agent {

// What to speak to the coordinator with. At the first start the certificate is asked for; key and
// certificate (mode 0600) are kept in <data_directory>/identity and used at later starts; a pair
// that ends within two months is renewed on its own strength. Over a Unix
// socket the kernel says who is calling, unless a token or a certificate is there.
// FAILED_PRECONDITION if there is neither a valid certificate nor a token, with the remedy;
// PERMISSION_DENIED if the token or the munge credential is not accepted; UNAVAILABLE if the
// coordinator is away, or does not know after 6 min that the job runs, or if this node's munged
// does not answer. Blocks.
absl::StatusOr<Endpoint> LoadOrEnrol(const v1::WorkerConfig& config, const Clock& clock);

// As LoadOrEnrol, after the coordinator has refused the certificate that is stored: it has been
// revoked, so only a token that was made since helps. The stored pair is replaced once that has
// worked. FAILED_PRECONDITION if there is no token, or with munge, which serves once. Blocks.
absl::StatusOr<Endpoint> EnrolAgain(const v1::WorkerConfig& config);

// When to call LoadOrEnrol again so that the certificate never ends: two months before it does, at
// the earliest in an hour, so that a coordinator that is away is not asked all the time; never for
// an endpoint without certificate.
absl::Time RenewalTime(const Endpoint& endpoint, const Clock& clock);

}  // namespace assay::agent

#endif  // WORKER_AGENT_ENROLMENT_H_
