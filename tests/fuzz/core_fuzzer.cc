// libFuzzer target: build/fuzz/bin/core_fuzzer tests/fuzz/corpus/core

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

#include "tests/fuzz/core_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay::testing::CheckCoreProperties(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
