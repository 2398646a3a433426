// What cuDNN will do for every convolution of both models, asked without a GPU: it plans for a
// device of which it is told the properties.
//
// The models are built in full size by the CUDA backend, on a device that gives out addresses in
// place of memory. So the plans are those of a run, with what is asked for next where cuDNN
// refuses. That a plan exists says that shape and type are supported, in which engine, with which
// numerics and how much workspace; not how fast it is nor what it computes. Engines behind which
// batch norm is fused are compiled when they are planned, for which cuDNN wants the driver: where
// there is none, `tests/gpu/run.sh plans` makes a stub of it.
//
// Golden values: tests/golden/cuda, of one version of cuDNN. ASSAY_UPDATE_GOLDEN=1 writes them.

#include <cudnn_graph.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/engine/cuda/host_device.h"
#include "worker/engine/backends/cuda/call_text.h"
#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/engine/backends/cuda/device/cudnn_convolution.h"
#include "worker/engine/backends/cuda/device/cudnn_descriptor.h"
#include "worker/engine/backends/cuda/plan.h"
#include "worker/models/cosmoflow.h"
#include "worker/models/deepcam.h"

namespace assay {
namespace {

using cuda::Epilogue;
using cuda::Precision;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

constexpr size_t kGoldenCudnn = 91900;
constexpr int64_t kBatches[] = {1, 2, 4, 8, 32, 64};

struct Gpu {
  const char* name;
  size_t memory_bytes;
  int memory_clock_khz, l2_bytes;
};

// As CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION has it.
std::string PropertiesOf(const Gpu& gpu) {
  return absl::StrReplaceAll(
      R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],)"
      R"("regsPerBlock":65536,"multiProcessorCount":132,"warpSize":32,)"
      R"("maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,)"
      R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,)"
      R"("maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,)"
      R"("supportCoopLaunch":1,"totalGlobalMem":$MEMORY,"smClockRateKHz":1980000,)"
      R"("memClockRateKHz":$CLOCK,"l2CacheSize":$L2,"cudaDeviceId":0,"deviceVer":900,)"
      R"("driverVer":13000,"deviceName":"$NAME"})",
      {{"$MEMORY", absl::StrCat(gpu.memory_bytes)},
       {"$CLOCK", absl::StrCat(gpu.memory_clock_khz)},
       {"$L2", absl::StrCat(gpu.l2_bytes)},
       {"$NAME", gpu.name}});
}

const char* NameOf(Precision precision) {
  return std::array{"fp32", "tf32", "bf16"}[static_cast<size_t>(precision)];
}

// Plans for a GPU that is not there, and gives out as much memory as it would have.
class PlanningDevice : public cuda::HostDevice {
 public:
  // `plans`: what is planned, each once; `fused`: the same of those with an epilogue, null: cuDNN
  // is not asked for them.
  PlanningDevice(const cuda::Descriptor* properties, size_t memory_bytes,
                 std::vector<std::string>* plans, std::vector<std::string>* fused)
      : properties_(properties), free_bytes_(memory_bytes), plans_(plans), fused_(fused) {}

  cuda::Fault Allocate(size_t bytes, void** memory) override {
    if (bytes > free_bytes_) return {.kind = cuda::FaultKind::kOutOfMemory, .text = "no memory"};
    free_bytes_ -= bytes;
    next_ += 256;
    *memory = reinterpret_cast<void*>(next_);
    sizes_[*memory] = bytes;
    return {};
  }
  void Free(void* memory) override { free_bytes_ += sizes_[memory]; }
  cuda::Fault CopyIn(const void*, void*, size_t) override { return {}; }

  cuda::Fault PlanConvolutions(
      const cuda::ConvolutionProblem& problem, const cuda::PlanOptions& options,
      std::vector<std::unique_ptr<cuda::ConvolutionPlan>>* plans) override {
    std::vector<std::string>* const list = problem.epilogue == Epilogue::kNone ? plans_ : fused_;
    if (list == nullptr) return {.kind = cuda::FaultKind::kUnsupported, .text = "not asked for"};
    cuda::Fault fault =
        cuda::PlanCudnnConvolutions(problem, {.device = properties_}, options, plans);
    const std::string text =
        absl::StrCat(cuda::TextOf(problem), ": ",
                     fault.ok() ? absl::StrCat(plans->front()->Describe(),
                                               " workspace=", plans->front()->workspace_bytes())
                                : "none");
    if (std::find(list->begin(), list->end(), text) == list->end()) list->push_back(text);
    return fault;
  }

 private:
  const cuda::Descriptor* const properties_;
  size_t free_bytes_;
  uintptr_t next_ = 0;
  std::map<void*, size_t> sizes_;
  std::vector<std::string>* const plans_;
  std::vector<std::string>* const fused_;
};

absl::Status Build(const std::string& model, int64_t batch, Backend* backend) {
  if (model == "cosmoflow") return MakeCosmoflow({.batch = batch}, backend).status();
  if (model == "cosmoflow of kernel 2")
    return MakeCosmoflow({.batch = batch, .kernel = 2}, backend).status();
  return MakeDeepcam({.batch = batch, .height = 768, .width = 1152}, backend).status();
}

class CudaPlansTest : public ::testing::TestWithParam<Gpu> {
 protected:
  void SetUp() override {
    // Which cuDNN would otherwise load and unload for every plan.
    static_cast<void>(dlopen("libnvrtc.so.13", RTLD_LAZY));
    const std::string json = PropertiesOf(GetParam());
    properties_ = cuda::Descriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    const cuda::Fault fault = properties_
                                  .Set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                       std::ssize(json), json.data())
                                  .Finalize("device properties");
    ASSERT_TRUE(fault.ok()) << fault.text;
  }

  // Of one model in the full size, in the order in which they are asked for, each once.
  std::vector<std::string> PlansOf(const std::string& model, Precision precision, int64_t batch,
                                   std::vector<std::string>* fused = nullptr) {
    std::vector<std::string> plans;
    auto backend = cuda::CudaBackend::Make(
        std::make_unique<PlanningDevice>(&properties_, GetParam().memory_bytes, &plans, fused),
        {.name = "cuda", .precision = precision});
    EXPECT_THAT(backend, IsOk());
    const absl::Status built = Build(model, batch, backend->get());
    if (!built.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(built)) << built;
      plans = {"does not fit the memory"};
    }
    return plans;
  }

  cuda::Descriptor properties_;
};

TEST_P(CudaPlansTest, AreThoseThatAreStored) {
  if (cudnnGetVersion() != kGoldenCudnn)
    GTEST_SKIP() << "golden plans are of cuDNN " << kGoldenCudnn << ", this is "
                 << cudnnGetVersion();
  std::string all;
  for (const std::string model : {"cosmoflow", "deepcam"})
    for (const Precision precision : {Precision::kBfloat16, Precision::kTf32, Precision::kFloat32})
      for (const int64_t batch : kBatches)
        absl::StrAppend(&all, model, " ", NameOf(precision), " batch ", batch, "\n  ",
                        absl::StrJoin(PlansOf(model, precision, batch), "\n  "), "\n");
  const std::string path = absl::StrCat("tests/golden/cuda/plans_", GetParam().name, ".txt");
  if (std::getenv("ASSAY_UPDATE_GOLDEN") != nullptr) {
    ASSERT_THAT(MakeDirectories("tests/golden/cuda"), IsOk());
    ASSERT_THAT(WriteFileAtomic(path, all), IsOk());
  }
  EXPECT_EQ(ReadFile(path).value_or("(no golden file)"), all)
      << path << "; ASSAY_UPDATE_GOLDEN=1 writes it";
}

// Whose padding is behind the input only: what cuDNN refused would fall to loops.
TEST_P(CudaPlansTest, PaddingOnOneSideIsTakenInEveryPrecision) {
  for (const Precision precision : {Precision::kBfloat16, Precision::kTf32, Precision::kFloat32})
    for (const int64_t batch : {1, 8}) {
      SCOPED_TRACE(absl::StrCat(NameOf(precision), " batch ", batch));
      const std::vector<std::string> plans = PlansOf("cosmoflow of kernel 2", precision, batch);

      EXPECT_THAT(plans, SizeIs(14));
      EXPECT_THAT(plans,
                  Each(::testing::AllOf(HasSubstr(NameOf(precision)), HasSubstr("engine="))));
    }
}

// The convolution of the last block writes no map.
TEST_P(CudaPlansTest, BlocksOfCosmoflowAreFusedInBf16) {
  if (dlopen("libcuda.so.1", RTLD_LAZY) == nullptr)
    GTEST_SKIP() << "cuDNN wants libcuda.so.1 to compile engines: tests/gpu/run.sh plans makes a "
                    "stub of it and runs this";
  for (const auto& [in, out, edge] :
       {std::array<int64_t, 3>{8, 32, 128}, {32, 64, 64}, {64, 128, 32}, {128, 256, 16}}) {
    SCOPED_TRACE(absl::StrCat(in, " to ", out));
    cuda::ConvolutionProblem problem =
        ProblemOf(cuda::LayoutOf(SameConv(8, {edge, edge, edge}, in, out, 3)), Epilogue::kLeakyPool,
                  Precision::kBfloat16, size_t{16} << 20);
    problem.slope = 0.3F;
    std::vector<std::unique_ptr<cuda::ConvolutionPlan>> plans;

    const cuda::Fault fault =
        cuda::PlanCudnnConvolutions(problem, {.device = &properties_}, {}, &plans);

    ASSERT_TRUE(fault.ok()) << fault.text;
    EXPECT_EQ(plans.front()->Describe(), "engine=1 notes=0");
  }
}

// A choice that was stored is found again by it.
TEST_P(CudaPlansTest, CandidatesAreToldApartAndEachIsHadAgainByItsIdentity) {
  const cuda::ConvolutionProblem problem =
      cuda::ProblemOf(cuda::LayoutOf(SameConv(4, {32, 32, 32}, 32, 64, 3)),
                      cuda::Direction::kForward, Precision::kBfloat16);
  std::vector<std::unique_ptr<cuda::ConvolutionPlan>> plans, same;
  const cuda::CudnnTarget target = {.device = &properties_};
  ASSERT_TRUE(cuda::PlanCudnnConvolutions(problem, target, {.most = 8}, &plans).ok());

  std::set<std::string> identities;
  for (const auto& plan : plans) {
    SCOPED_TRACE(plan->Identity());
    identities.insert(plan->Identity());
    ASSERT_TRUE(
        cuda::PlanCudnnConvolutions(problem, target, {.identity = plan->Identity()}, &same).ok());
    ASSERT_THAT(same, SizeIs(1));
    EXPECT_EQ(same.front()->Identity(), plan->Identity());
    EXPECT_EQ(same.front()->workspace_bytes(), plan->workspace_bytes());
  }
  EXPECT_THAT(identities, SizeIs(plans.size()));
  EXPECT_THAT(identities, SizeIs(Gt(1U)));
  EXPECT_THAT(identities, Contains(MatchesRegex("engine=[0-9]+ knobs=[0-9]+:[0-9]+(,[0-9:]+)*")));
  EXPECT_FALSE(
      cuda::PlanCudnnConvolutions(problem, target, {.identity = "engine=12345"}, &same).ok());
}

TEST_P(CudaPlansTest, BatchNormIsFusedBehindEveryConvolutionOfDeepcamInBf16AndTf32) {
  if (dlopen("libcuda.so.1", RTLD_LAZY) == nullptr)
    GTEST_SKIP() << "cuDNN wants libcuda.so.1 to compile engines: tests/gpu/run.sh plans makes a "
                    "stub of it and runs this";
  for (const Precision precision : {Precision::kBfloat16, Precision::kTf32})
    for (const int64_t batch : {1, 8}) {
      SCOPED_TRACE(absl::StrCat(NameOf(precision), " batch ", batch));
      std::vector<std::string> fused;
      PlansOf("deepcam", precision, batch, &fused);

      EXPECT_THAT(fused, SizeIs(10));
      EXPECT_THAT(fused, Each(HasSubstr(": engine=7 notes=0 workspace=0")));
    }
}

INSTANTIATE_TEST_SUITE_P(Gpus, CudaPlansTest,
                         ::testing::Values(Gpu{"H100", 85'017'493'504, 2'619'000, 52'428'800},
                                           Gpu{"H200", 150'121'545'728, 3'201'000, 62'914'560}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace assay
