// What can have made a node slower or less even than it is by itself while a run went on: others'
// work, its host, heat, a lack of memory. A note for who reads the run's time, never a finding: it
// costs the submitter time and gains him none. Pure functions of their arguments.

#ifndef COMMON_TELEMETRY_DISTURBANCE_H_
#define COMMON_TELEMETRY_DISTURBANCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/telemetry/series.h"

namespace assay::telemetry {

// From here on each is told. A synchronous step waits for its slowest rank, so what a node loses
// on average is the least that a run does.
inline constexpr double kOthersShare = 0.05;        // of the processors, over the run
inline constexpr double kOthersMinuteShare = 0.25;  // and in any minute
inline constexpr double kStolenShare = 0.01;        // by a host of this virtual machine
// Of the time in which some process waited for memory to be freed or read back.
inline constexpr double kMemoryWaitShare = 0.01;
// Fewer pages come back of any daemon that slept.
inline constexpr int64_t kSwappedInBytes = 1 << 20;
// Of the samples in which a GPU said that heat or a brake held its clocks down. Its limit of power
// is none of these: under full load it is where a GPU is meant to be.
inline constexpr double kGpuLimitedShare = 0.01;

// Sentences, from `begin_ns` to `end_ns` by the node's clock; empty if there is nothing to tell, or
// if the node does not tell it.
std::vector<std::string> DisturbancesOf(const Series& series, int64_t begin_ns, int64_t end_ns);

}  // namespace assay::telemetry

#endif  // COMMON_TELEMETRY_DISTURBANCE_H_
