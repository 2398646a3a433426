// libFuzzer target: build/fuzz/bin/manifest_fuzzer tests/fuzz/corpus/manifest

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/archive_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay::testing::CheckManifest(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
