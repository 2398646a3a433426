// The backends that tests of operations run on: those of the build, and the logic of the CUDA
// backend on a device faked on the CPU.

#ifndef TESTS_WORKER_ENGINE_BACKENDS_UNDER_TEST_H_
#define TESTS_WORKER_ENGINE_BACKENDS_UNDER_TEST_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "tests/worker/engine/host_tensor.h"
#include "worker/engine/backend.h"
#include "worker/engine/shape.h"

namespace assay {

// The build's (BackendNames), then "cuda-on-host" and "cuda-on-host-direct": the latter's device
// refuses all convolutions, so that the backend's own loops run.
std::vector<std::string> BackendsUnderTest();

// These, the CUDA backend's logic with maps (and CosmoFlow's blocks) in bfloat16 in three variants,
// and "cuda-bf16".
std::vector<std::string> MapBackendsUnderTest();

// Takes tensors in host memory, whatever the backend. UNAVAILABLE: its device is absent.
absl::StatusOr<std::unique_ptr<Backend>> MakeBackendUnderTest(const std::string& name);

// Whether the backend rounds the factors of its products to bfloat16.
bool HasBf16Factors(const std::string& name);

// HostTensor<float>::Random, but for backends with bfloat16 factors rounded to bfloat16: of such
// numbers the products are exact, so that the tolerances of float32 hold.
HostTensor<float> DrawFactors(const std::string& backend, Shape shape, uint32_t salt);

// Whether the backend's maps are bfloat16.
bool HasBf16Maps(const std::string& name);

// HostTensor<float>::Random plus `offset`, rounded to what the backend's maps hold.
HostTensor<float> DrawMap(const std::string& backend, Shape shape, uint32_t salt, float offset = 0);

// For INSTANTIATE_TEST_SUITE_P: letters and underscores only.
std::string NameOfBackendTest(const ::testing::TestParamInfo<std::string>& test);

}  // namespace assay

#endif  // TESTS_WORKER_ENGINE_BACKENDS_UNDER_TEST_H_
