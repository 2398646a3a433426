// Commands for the coordinator's core out of a fuzzer's bytes: mostly such as could come, because
// they are about what is there, and often with a field that is wrong or extreme.

#ifndef TESTS_FUZZ_CORE_COMMANDS_H_
#define TESTS_FUZZ_CORE_COMMANDS_H_

#include <string>

#include "server/core/core.h"
#include "tests/fuzz/byte_source.h"

namespace assay::testing {

// The next command of `bytes`. Workers are w0 to w4.
core::Command DecodeCommand(const core::Core& core, ByteSource* bytes);

}  // namespace assay::testing

#endif  // TESTS_FUZZ_CORE_COMMANDS_H_
