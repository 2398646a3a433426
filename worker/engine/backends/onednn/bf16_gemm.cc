#include "worker/engine/backends/onednn/bf16_gemm.h"

#include <span>
#include <utility>

#include "worker/engine/backends/onednn/onednn_error.h"

namespace assay {
namespace {

using Desc = dnnl::memory::desc;
using Type = dnnl::memory::data_type;

// A (rows, columns) matrix, stored row by row or, if transposed, column by column.
Desc MatrixDesc(int64_t rows, int64_t columns, Type type, bool is_transposed) {
  const dnnl::memory::dims strides =
      is_transposed ? dnnl::memory::dims{1, rows} : dnnl::memory::dims{columns, 1};
  return Desc({rows, columns}, type, strides);
}

std::span<const float> Numbers(const float* data, int64_t count) {
  return {data, static_cast<size_t>(count)};
}

}  // namespace

Bf16Gemm::Plan* Bf16Gemm::PlanOf(const Gemm& g) {
  const Key key = {g.transpose_a, g.transpose_b, g.m, g.n, g.k};
  const auto found = plans_.find(key);
  if (found != plans_.end()) return &found->second;
  const Desc a = MatrixDesc(g.m, g.k, Type::bf16, g.transpose_a);
  const Desc b = MatrixDesc(g.k, g.n, Type::bf16, g.transpose_b);
  const Desc c = MatrixDesc(g.m, g.n, Type::f32, false);
  const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(a, b, c), engine_);
  Plan plan = {dnnl::matmul(desc), dnnl::memory(a, engine_, nullptr),
               dnnl::memory(b, engine_, nullptr), dnnl::memory(c, engine_, nullptr)};
  return &plans_.emplace(key, std::move(plan)).first->second;
}

void Bf16Gemm::Run(const Gemm& product, const float* a, const float* b, float* c) {
  MustOnednn("matrix product in bfloat16", [&] {
    Plan* const plan = PlanOf(product);
    plan->a.set_data_handle(staging_->Rounded(0, Numbers(a, product.m * product.k)));
    plan->b.set_data_handle(staging_->Rounded(1, Numbers(b, product.k * product.n)));
    plan->c.set_data_handle(c);
    plan->matmul.execute(
        stream_, {{DNNL_ARG_SRC, plan->a}, {DNNL_ARG_WEIGHTS, plan->b}, {DNNL_ARG_DST, plan->c}});
  });
}

void RunProduct(const Gemm& product, Bf16Products* products, const Tensor& a, const Tensor& b,
                const Tensor& c) {
  if (products == nullptr)
    product.Run(a.As<float>(), b.As<float>(), c.As<float>());
  else
    products->gemm.Run(product, a.As<float>(), b.As<float>(), c.As<float>());
}

}  // namespace assay
