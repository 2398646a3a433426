#include "tests/worker/engine/backends_under_test.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "tests/worker/engine/cuda/host_device.h"
#include "tests/worker/engine/staged_backend.h"
#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/engine/backends/registry.h"
#include "worker/engine/bfloat16.h"

namespace assay {
namespace {

constexpr char kOnHost[] = "cuda-on-host";
constexpr char kOnHostDirect[] = "cuda-on-host-direct";
// With maps in bfloat16: by the library, by loops, by a library that offers no more than TF32, and
// with blocks in one call.
constexpr char kOnHostBf16[] = "cuda-on-host-bf16";
constexpr char kOnHostBf16Direct[] = "cuda-on-host-direct-bf16";
constexpr char kOnHostBf16Tf32[] = "cuda-on-host-tf32-bf16";
constexpr char kOnHostBf16Fused[] = "cuda-on-host-fused-bf16";

absl::StatusOr<std::unique_ptr<Backend>> Make(const std::string& name) {
  if (name.find(kOnHost) == std::string::npos) return MakeBackend(name);
  auto device = std::make_unique<cuda::HostDevice>();
  device->set_refuses_convolutions(name == kOnHostDirect || name == kOnHostBf16Direct);
  if (name == kOnHostBf16Tf32) device->set_most_precision(cuda::Precision::kTf32);
  const auto precision =
      HasBf16Factors(name) ? cuda::Precision::kBfloat16 : cuda::Precision::kFloat32;
  return cuda::CudaBackend::Make(
      std::move(device),
      {.name = name, .precision = precision, .fuses_blocks = name == kOnHostBf16Fused});
}

}  // namespace

std::vector<std::string> BackendsUnderTest() {
  std::vector<std::string> names = BackendNames();
  // What their libraries do with rounded factors is known on a GPU only.
  std::erase(names, "cuda-tf32");
  std::erase(names, "cuda-bf16");
  names.emplace_back(kOnHost);
  names.emplace_back(kOnHostDirect);
  return names;
}

std::vector<std::string> MapBackendsUnderTest() {
  std::vector<std::string> names = BackendsUnderTest();
  names.insert(names.end(),
               {kOnHostBf16, kOnHostBf16Direct, kOnHostBf16Tf32, kOnHostBf16Fused, "cuda-bf16"});
  return names;
}

absl::StatusOr<std::unique_ptr<Backend>> MakeBackendUnderTest(const std::string& name) {
  ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend, Make(name));
  if (backend->is_host_memory()) return backend;
  return StageThroughHost(std::move(backend));
}

bool HasBf16Factors(const std::string& name) {
  return name.ends_with("-bf16");
}

bool HasBf16Maps(const std::string& name) {
  return HasBf16Factors(name) && name.starts_with("cuda");
}

HostTensor<float> DrawMap(const std::string& backend, Shape shape, uint32_t salt, float offset) {
  HostTensor<float> map = HostTensor<float>::Random(shape, salt);
  for (float& value : map.values)
    value = HasBf16Maps(backend) ? float(Bfloat16(value + offset)) : value + offset;
  return map;
}

HostTensor<float> DrawFactors(const std::string& backend, Shape shape, uint32_t salt) {
  HostTensor<float> factors = HostTensor<float>::Random(shape, salt);
  if (HasBf16Factors(backend))
    for (float& value : factors.values)
      value = float(Bfloat16(value));
  return factors;
}

std::string NameOfBackendTest(const ::testing::TestParamInfo<std::string>& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace assay
