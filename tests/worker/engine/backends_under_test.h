// The backends that tests of operations run on: those of the build, and the logic of the CUDA
// backend on a device faked on the CPU.

#ifndef TESTS_WORKER_ENGINE_BACKENDS_UNDER_TEST_H_
#define TESTS_WORKER_ENGINE_BACKENDS_UNDER_TEST_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "worker/engine/backend.h"

namespace assay {

// The build's (BackendNames), then "cuda-on-host" and "cuda-on-host-direct": the latter's device
// refuses all convolutions, so that the backend's own loops run.
std::vector<std::string> BackendsUnderTest();

// Takes tensors in host memory, whatever the backend. UNAVAILABLE: its device is absent.
absl::StatusOr<std::unique_ptr<Backend>> MakeBackendUnderTest(const std::string& name);

// For INSTANTIATE_TEST_SUITE_P: letters and underscores only.
std::string NameOfBackendTest(const ::testing::TestParamInfo<std::string>& test);

}  // namespace assay

#endif  // TESTS_WORKER_ENGINE_BACKENDS_UNDER_TEST_H_
