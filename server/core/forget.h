// What leaves memory because nothing needs it any more. The store keeps it: workers and tokens can
// still be read, and the log of events is whole.

#ifndef SERVER_CORE_FORGET_H_
#define SERVER_CORE_FORGET_H_

#include <cstdint>
#include <vector>

#include "server/core/event.h"
#include "server/core/types.h"

namespace assay::core {

// How long a request_id is remembered after its request was answered: who repeats it within that
// time gets the same, who repeats it later asks anew. So long, too, tokens that are used, revoked
// or expired, and workers that have signed off or are lost.
inline constexpr int64_t kRememberUs = 30LL * 24 * 3600 * 1'000'000;

// Workers of allocations that have ended, once no run that goes on names them. Not those of which
// an operator has said something that must hold on: that they are drained, or revoked.
std::vector<Event> ForgetEnded(const State& state);

// Tokens, requests and workers past kRememberUs.
std::vector<Event> ForgetOld(const State& state, int64_t now_us);

}  // namespace assay::core

#endif  // SERVER_CORE_FORGET_H_
