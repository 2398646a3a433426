#include "worker/engine/backends/onednn/gemm.h"

#include "worker/engine/backends/onednn/onednn_error.h"
#include <oneapi/dnnl/dnnl.hpp>

namespace assay {

void Gemm::Run(const float* a, const float* b, float* c) const {
  MustOnednn("matrix product", [&] {
    const dnnl::status status =
        dnnl::sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, 1.0F, a,
                    transpose_a ? m : k, b, transpose_b ? k : n, 0.0F, c, n);
    if (status != dnnl::status::success)
      throw dnnl::error(static_cast<dnnl_status_t>(status), "sgemm failed");
  });
}

}  // namespace assay
