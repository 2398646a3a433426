// Row-major matrix products through oneDNN.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_GEMM_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_GEMM_H_

#include <cstdint>

namespace assay {

// c = op(a) op(b): op(a) is (m, k), op(b) is (k, n), c is (m, n); op transposes or does nothing.
struct Gemm {
  bool transpose_a = false, transpose_b = false;
  int64_t m = 0, n = 0, k = 0;

  // An error of oneDNN ends the process with ExitCode::kBackend.
  void Run(const float* a, const float* b, float* c) const;
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_GEMM_H_
