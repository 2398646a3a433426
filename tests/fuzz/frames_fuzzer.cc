// libFuzzer target: build/fuzz/bin/frames_fuzzer tests/fuzz/corpus/frames

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/gate_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay::testing::CheckFrames(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
