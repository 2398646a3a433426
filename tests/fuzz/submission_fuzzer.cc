// libFuzzer target: build/fuzz/bin/submission_fuzzer tests/fuzz/corpus/toml_submission

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/toml_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay::testing::CheckSubmissionFile(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
