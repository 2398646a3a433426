// Matrix products of factors rounded to bfloat16, added up in float32, through oneDNN.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_BF16_GEMM_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_BF16_GEMM_H_

#include <cstdint>
#include <map>
#include <tuple>

#include "worker/engine/backends/onednn/bf16_staging.h"
#include "worker/engine/backends/onednn/gemm.h"
#include "worker/engine/tensor.h"
#include <oneapi/dnnl/dnnl.hpp>

namespace assay {

// Plans each shape once. Not thread-safe.
class Bf16Gemm {
 public:
  // `staging` must outlive it.
  Bf16Gemm(const dnnl::engine& engine, const dnnl::stream& stream, Bf16Staging* staging)
      : engine_(engine), stream_(stream), staging_(staging) {}

  // As product.Run. An error of oneDNN ends the process with ExitCode::kBackend.
  void Run(const Gemm& product, const float* a, const float* b, float* c);

 private:
  using Key = std::tuple<bool, bool, int64_t, int64_t, int64_t>;
  struct Plan {
    dnnl::matmul matmul;
    dnnl::memory a, b, c;  // views whose addresses change with every call
  };

  Plan* PlanOf(const Gemm& product);

  dnnl::engine engine_;
  dnnl::stream stream_;
  Bf16Staging* const staging_;
  std::map<Key, Plan> plans_;
};

// What a backend needs to multiply in bfloat16.
struct Bf16Products {
  Bf16Products(const dnnl::engine& engine, const dnnl::stream& stream)
      : staging(engine), gemm(engine, stream, &staging) {}
  Bf16Products(const Bf16Products&) = delete;
  Bf16Products& operator=(const Bf16Products&) = delete;

  Bf16Staging staging;
  Bf16Gemm gemm;
};

inline Bf16Staging* StagingOf(Bf16Products* products) {
  return products == nullptr ? nullptr : &products->staging;
}

// c = op(a) op(b), in float32 where `products` is null.
void RunProduct(const Gemm& product, Bf16Products* products, const Tensor& a, const Tensor& b,
                const Tensor& c);

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_BF16_GEMM_H_
