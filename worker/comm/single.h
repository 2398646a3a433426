// A world of one rank: every collective operation is the identity.

#ifndef WORKER_COMM_SINGLE_H_
#define WORKER_COMM_SINGLE_H_

#include <memory>

#include "worker/comm/collective.h"

namespace assay::comm {

// Never fails; needs no network and no clock.
std::unique_ptr<Collective> OpenSingle();

}  // namespace assay::comm

#endif  // WORKER_COMM_SINGLE_H_
