// What must hold for the coordinator's core whatever its callers send. Shared by the smoke test and
// by the libFuzzer target.
//
//   - An error changes nothing: no event, no state, no order to a worker.
//   - Replaying the events of a batch onto the state before it gives the state after it, and
//     replaying the whole log onto nothing gives what is in memory.
//   - A gang is whole or not there; a worker serves one run; what has ended stays as it ended.
//   - Ids and sequence numbers rise by one and are never given again.
//   - A batch whose commit is refused leaves nothing behind; a restart continues from what is
//   there.

#ifndef TESTS_FUZZ_CORE_PROPERTIES_H_
#define TESTS_FUZZ_CORE_PROPERTIES_H_

#include "absl/strings/string_view.h"

namespace assay::testing {

// Plays `bytes` as a course of commands, crashes and time; aborts the process if a property breaks.
void CheckCoreProperties(absl::string_view bytes);

}  // namespace assay::testing

#endif  // TESTS_FUZZ_CORE_PROPERTIES_H_
