// libFuzzer target: build/fuzz/bin/config_fuzzer tests/fuzz/corpus/toml_config

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/toml_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay::testing::CheckCliConfig(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
