// How fast the nodes of a gang reach each other, measured by the transport that trains: the check
// of a fabric before a set of runs (specification of fleets, section 5).

#ifndef WORKER_TRAINER_FABRIC_H_
#define WORKER_TRAINER_FABRIC_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "assay/v1/fabric.pb.h"

#include "common/clock.h"
#include "worker/comm/registry.h"

namespace assay {

struct FabricSizes {
  size_t bytes = size_t{64} << 20;              // of a long message
  int round_count = 100;                        // of short ones; of long ones two
  absl::Duration patience = absl::Seconds(30);  // of rank 0, for the others to come
};

// How this rank of `spec` meets the others.
comm::CollectiveOptions OptionsOf(const v1::FabricSpec& spec);

// Carries this rank's part out, until `spec`'s time limit at most. What a rank other than 0 reports
// is nothing; rank 0 reports all links, or who has not come, or in `error` why nothing was
// measured.
//   latency: half a round trip of 8 bytes, the mean of round_count.
//   rate: `bytes` each way at once, the better of two. Pairs of nodes measure side by side, never
//     one node with two others.
//   all-reduce: the mean of round_count for 8 bytes, the better of two for `bytes`.
v1::FabricReport MeasureFabric(const v1::FabricSpec& spec, const FabricSizes& sizes,
                               const Clock* clock);

}  // namespace assay

#endif  // WORKER_TRAINER_FABRIC_H_
