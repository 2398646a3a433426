// Waiting for what happens in other processes.

#ifndef TESTS_SUPPORT_AWAIT_H_
#define TESTS_SUPPORT_AWAIT_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace assay::testing {

// Whether `condition` came true within `patience`; asks ten times a second, since what it waits for
// needs the cores.
template <typename Condition>
bool Await(Condition condition, absl::Duration patience = absl::Minutes(2)) {
  for (const absl::Time end = absl::Now() + patience; absl::Now() < end;) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(100));
  }
  return false;
}

}  // namespace assay::testing

#endif  // TESTS_SUPPORT_AWAIT_H_
