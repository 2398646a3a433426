// What the conformance suites share: a backend beside the reference, and when their results agree.

#ifndef TESTS_WORKER_ENGINE_CONFORMANCE_H_
#define TESTS_WORKER_ENGINE_CONFORMANCE_H_

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"
#include "tests/worker/engine/backends_under_test.h"
#include "tests/worker/engine/host_tensor.h"
#include "worker/engine/backend.h"
#include "worker/engine/backends/reference/reference_backend.h"

namespace assay {

using Floats = HostTensor<float>;

// The largest difference, divided by the largest value of the reference's result (which sums in
// double), must stay below 2e-6 times the root of the number of terms in a sum: float rounding
// errors add up like a random walk. `more` is allowed beside it.
inline void ExpectClose(const Floats& actual, const Floats& expected, int64_t terms,
                        double more = 0) {
  double scale = 0, difference = 0;
  for (size_t i = 0; i < expected.values.size(); ++i) {
    scale = std::max(scale, std::abs(double{expected.values[i]}));
    difference =
        std::max(difference, std::abs(double{actual.values[i]} - double{expected.values[i]}));
  }
  EXPECT_LE(difference / scale, more + 2e-6 * std::sqrt(static_cast<double>(terms)));
  EXPECT_GT(scale, 0);
}

// The parameter names the backend; skipped where this machine cannot run it.
class BackendTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Backend>> backend = MakeBackendUnderTest(GetParam());
    if (absl::IsUnavailable(backend.status())) GTEST_SKIP() << backend.status();
    ASSERT_THAT(backend, testing::IsOk());
    backend_ = *std::move(backend);
  }

  std::unique_ptr<Backend> backend_;
  ReferenceBackend<float> reference_;
};

}  // namespace assay

#endif  // TESTS_WORKER_ENGINE_CONFORMANCE_H_
