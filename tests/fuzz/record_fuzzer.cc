// libFuzzer target: build/fuzz/bin/record_fuzzer tests/fuzz/corpus/record

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/archive_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay::testing::CheckRecords(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
