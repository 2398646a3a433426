// libFuzzer target: build/fuzz/bin/visit_fuzzer tests/fuzz/corpus/visit

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/gate_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay::testing::CheckVisit(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
