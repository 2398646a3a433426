// libFuzzer target: build/fuzz/bin/pack_fuzzer tests/fuzz/corpus/pack

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/pack_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay::testing::CheckPackProperties(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
