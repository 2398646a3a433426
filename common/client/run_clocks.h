// How the clocks of a run's nodes stood to that of node 0, as who reads its files finds it.

#ifndef COMMON_CLIENT_RUN_CLOCKS_H_
#define COMMON_CLIENT_RUN_CLOCKS_H_

#include "assay/v1/resources.pb.h"

#include "common/client/client.h"
#include "common/rules/run_clocks.h"

namespace assay::client {

// Downloads what it is asked for; both arguments must outlive it. A file that cannot be had, or is
// larger than kClockSamplesBytesMax, is none.
rules::RunClocks ClocksOf(const client::Client& client, const v1::Run& run);

}  // namespace assay::client

#endif  // COMMON_CLIENT_RUN_CLOCKS_H_
