// libFuzzer target: build/fuzz/bin/mllog_fuzzer tests/fuzz/corpus/mllog

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/mllog_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay::testing::CheckMllogProperties(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
