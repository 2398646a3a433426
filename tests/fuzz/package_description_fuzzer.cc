// libFuzzer target: build/fuzz/bin/package_description_fuzzer tests/fuzz/corpus/package_description

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/package_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay::testing::CheckDescriptionProperties(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
