#include "worker/engine/backends/cuda/device/cublas_matmul.h"

#include <utility>

#include "worker/engine/backends/cuda/device/cuda_fault.h"

namespace assay::cuda {
namespace {

// The largest power of two, up to cuBLAS' own 256, of which all addresses are multiples.
uint32_t AlignmentOf(const MatmulCall& call) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(call.a) | reinterpret_cast<uintptr_t>(call.b) |
                         reinterpret_cast<uintptr_t>(call.c) |
                         reinterpret_cast<uintptr_t>(call.bias) | 256U;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

cublasStatus_t Prefer(uint32_t alignment, cublasLtMatmulPreference_t preference) {
  const size_t workspace = CublasMatmul::kWorkspaceBytes;
  cublasStatus_t status = cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace));
  for (const cublasLtMatmulPreferenceAttributes_t attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    if (status == CUBLAS_STATUS_SUCCESS)
      status = cublasLtMatmulPreferenceSetAttribute(preference, attribute, &alignment,
                                                    sizeof(alignment));
  return status;
}

// What a, b and c hold.
cudaDataType_t FactorsOf(ProductNumbers numbers) {
  const bool is_bf16 =
      numbers == ProductNumbers::kBfloat16 || numbers == ProductNumbers::kBfloat16Factors;
  return is_bf16 ? CUDA_R_16BF : CUDA_R_32F;
}
cudaDataType_t ResultOf(ProductNumbers numbers) {
  return numbers == ProductNumbers::kBfloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

}  // namespace

// Descriptors of one shape and the algorithm for it.
struct CublasMatmul::Plan {
  ~Plan() {
    if (operation != nullptr) cublasLtMatmulDescDestroy(operation);
    for (const cublasLtMatrixLayout_t layout : {a, b, c})
      if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
  }

  Fault Describe(const MatmulCall& call);
  Fault DescribeEpilogue(const MatmulCall& call);
  Fault PointToBias(const void* bias);
  Fault Choose(cublasLtHandle_t handle, uint32_t alignment);

  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm = {};
};

Fault CublasMatmul::Plan::Describe(const MatmulCall& call) {
  const auto size = [](int64_t value) { return static_cast<uint64_t>(value); };
  const auto transpose = [](bool wanted) { return wanted ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const cublasOperation_t op_a = transpose(call.transpose_a), op_b = transpose(call.transpose_b);
  RETURN_IF_FAULT("matrix product", cublasLtMatmulDescCreate(&operation,
                                                             call.numbers == ProductNumbers::kTf32
                                                                 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                 : CUBLAS_COMPUTE_32F,
                                                             CUDA_R_32F));
  RETURN_IF_FAULT(
      "matrix product",
      cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof(op_a)));
  RETURN_IF_FAULT(
      "matrix product",
      cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof(op_b)));
  const cudaDataType_t factors = FactorsOf(call.numbers);
  RETURN_IF_FAULT("matrix a", cublasLtMatrixLayoutCreate(
                                  &a, factors, size(call.transpose_a ? call.k : call.m),
                                  size(call.transpose_a ? call.m : call.k), call.a_leading));
  RETURN_IF_FAULT("matrix b", cublasLtMatrixLayoutCreate(
                                  &b, factors, size(call.transpose_b ? call.n : call.k),
                                  size(call.transpose_b ? call.k : call.n), call.b_leading));
  RETURN_IF_FAULT("matrix c", cublasLtMatrixLayoutCreate(&c, ResultOf(call.numbers), size(call.m),
                                                         size(call.n), call.c_leading));
  return call.bias == nullptr ? Fault{} : DescribeEpilogue(call);
}

Fault CublasMatmul::Plan::DescribeEpilogue(const MatmulCall& call) {
  const cublasLtEpilogue_t epilogue =
      call.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  const auto type = static_cast<int32_t>(ResultOf(call.numbers));
  RETURN_IF_FAULT("bias of a product",
                  cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                 &epilogue, sizeof(epilogue)));
  RETURN_IF_FAULT("bias of a product",
                  cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                                                 &type, sizeof(type)));
  return PointToBias(call.bias);
}

Fault CublasMatmul::Plan::PointToBias(const void* bias) {
  return FaultOf("bias of a product",
                 cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                                sizeof(bias)));
}

Fault CublasMatmul::Plan::Choose(cublasLtHandle_t handle, uint32_t alignment) {
  cublasLtMatmulPreference_t preference = nullptr;
  RETURN_IF_FAULT("matrix product", cublasLtMatmulPreferenceCreate(&preference));
  cublasLtMatmulHeuristicResult_t result = {};
  int found = 0;
  cublasStatus_t status = Prefer(alignment, preference);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = cublasLtMatmulAlgoGetHeuristic(handle, operation, a, b, c, c, preference, 1, &result,
                                            &found);
  cublasLtMatmulPreferenceDestroy(preference);
  // What is found has a status of its own.
  if (status == CUBLAS_STATUS_SUCCESS)
    status = found == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : result.state;
  algorithm = result.algo;
  return FaultOf("algorithm for a matrix product", status);
}

CublasMatmul::CublasMatmul() = default;

CublasMatmul::~CublasMatmul() {
  plans_.clear();
  if (handle_ != nullptr) cublasLtDestroy(handle_);
}

Fault CublasMatmul::Open() {
  return FaultOf("open cuBLAS", cublasLtCreate(&handle_));
}

Fault CublasMatmul::Find(const MatmulCall& call, Plan** plan) {
  const uint32_t alignment = AlignmentOf(call);
  const int epilogue = call.bias == nullptr ? 0 : call.relu ? 2 : 1;
  std::unique_ptr<Plan>& found = plans_[{call.transpose_a, call.transpose_b, call.m, call.n, call.k,
                                         call.numbers, epilogue, alignment}];
  if (found == nullptr) {
    auto made = std::make_unique<Plan>();
    Fault fault = made->Describe(call);
    if (fault.ok()) fault = made->Choose(handle_, alignment);
    if (!fault.ok()) return fault;
    found = std::move(made);
  }
  *plan = found.get();
  return {};
}

Fault CublasMatmul::Run(const MatmulCall& call, void* workspace, cudaStream_t stream) {
  Plan* plan = nullptr;
  Fault fault = Find(call, &plan);
  if (fault.ok() && call.bias != nullptr) fault = plan->PointToBias(call.bias);
  if (!fault.ok()) return fault;
  const float one = 1, zero = 0;
  return FaultOf("matrix product",
                 cublasLtMatmul(handle_, plan->operation, &one, call.a, plan->a, call.b, plan->b,
                                &zero, call.c, plan->c, call.c, plan->c, &plan->algorithm,
                                workspace, kWorkspaceBytes, stream));
}

}  // namespace assay::cuda
