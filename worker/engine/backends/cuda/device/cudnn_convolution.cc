#include "worker/engine/backends/cuda/device/cudnn_convolution.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "worker/engine/backends/cuda/device/cuda_fault.h"
#include "worker/engine/backends/cuda/device/cudnn_descriptor.h"

namespace assay::cuda {
namespace {

// As for kGraphHandle: deprecated, and in every cuDNN 9.
constexpr auto kPlanHandle = static_cast<cudnnBackendAttributeName_t>(400);

class CudnnPlan : public ConvolutionPlan {
 public:
  // `engine` and `identity`: as Describe and Identity.
  CudnnPlan(const ConvolutionProblem& problem, cudnnHandle_t handle, Descriptor plan,
            std::string engine, std::string identity, size_t workspace_bytes)
      : ConvolutionPlan(problem),
        handle_(handle),
        plan_(std::move(plan)),
        engine_(std::move(engine)),
        identity_(std::move(identity)),
        workspace_bytes_(workspace_bytes) {}

  size_t workspace_bytes() const override { return workspace_bytes_; }
  std::string Describe() const override { return engine_; }
  std::string Identity() const override { return identity_; }

  Fault Run(const ConvolutionCall& call) {
    std::vector<int64_t> ids = {kTensorX, kTensorW, kTensorY};
    std::vector<const void*> pointers = {call.x, call.w, call.y};
    const auto add = [&](int64_t id, const void* pointer) {
      if (pointer != nullptr) ids.push_back(id), pointers.push_back(pointer);
    };
    add(kTensorFactor, call.factor);
    add(kTensorAddend, call.addend);
    add(kTensorPlaces, call.places);
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    Fault fault =
        pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
            .Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::ssize(pointers),
                 pointers.data())
            .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &call.workspace)
            .Finalize("variant pack");
    if (!fault.ok()) return fault;
    return FaultOf("convolution", cudnnBackendExecute(handle_, plan_.get(), pack.get()));
  }

 private:
  const cudnnHandle_t handle_;
  const Descriptor plan_;
  const std::string engine_, identity_;
  const size_t workspace_bytes_;
};

// kUnsupported where this configuration cannot run.
Fault MakePlan(const Descriptor& configuration, const CudnnTarget& target,
               const ConvolutionProblem& problem, std::unique_ptr<ConvolutionPlan>* result) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (target.device != nullptr) {
    plan.Set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.device);
  } else {
    plan.Set(kPlanHandle, CUDNN_TYPE_HANDLE, 1, &target.handle);
  }
  Fault fault =
      plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration).Finalize("execution plan");
  if (!fault.ok()) return fault;
  int64_t workspace = 0, count = 0;
  RETURN_IF_FAULT("workspace of a plan",
                  cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                           CUDNN_TYPE_INT64, 1, &count, &workspace));
  if (static_cast<size_t>(workspace) > problem.max_workspace)
    return {.kind = FaultKind::kUnsupported, .text = "the engine wants too large a workspace"};
  *result = std::make_unique<CudnnPlan>(problem, target.handle, std::move(plan),
                                        DescribeEngine(configuration), IdentityOf(configuration),
                                        static_cast<size_t>(workspace));
  return {};
}

using Plans = std::vector<std::unique_ptr<ConvolutionPlan>>;

bool IsAmong(const Plans& plans, const std::string& identity) {
  return std::any_of(plans.begin(), plans.end(),
                     [&](const auto& plan) { return plan->Identity() == identity; });
}

// Adds what is wanted of `configurations`; the last of the faults there were.
Fault AddPlans(const std::vector<Descriptor>& configurations, const ConvolutionProblem& problem,
               const CudnnTarget& target, const PlanOptions& options, Plans* plans) {
  Fault last;
  for (const Descriptor& configuration : configurations) {
    if (std::ssize(*plans) >= options.most) break;
    if (!IsFaithful(NumericalNotes(configuration), problem.precision)) continue;
    const std::string identity = IdentityOf(configuration);
    if (!options.identity.empty() && identity != options.identity) continue;
    if (IsAmong(*plans, identity)) continue;
    std::unique_ptr<ConvolutionPlan> plan;
    Fault fault = MakePlan(configuration, target, problem, &plan);
    if (fault.ok()) {
      plans->push_back(std::move(plan));
    } else {
      last = std::move(fault);
    }
  }
  return last;
}

}  // namespace

Fault PlanCudnnConvolutions(const ConvolutionProblem& problem, const CudnnTarget& target,
                            const PlanOptions& options, Plans* plans) {
  plans->clear();
  Descriptor graph;
  Fault fault = MakeConvolutionGraph(problem, target.handle, &graph);
  // Types and extents that do not go together are refused by this or that code.
  if (!fault.ok()) return {.kind = FaultKind::kUnsupported, .text = fault.text};
  Fault last = {.kind = FaultKind::kUnsupported, .text = "cuDNN proposes no faithful engine"};
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    // What there is another good way for is not worth a slow engine.
    if (problem.epilogue != Epilogue::kNone && mode == CUDNN_HEUR_MODE_FALLBACK) continue;
    std::vector<Descriptor> configurations;
    fault = ProposeEngines(graph, mode, target.device, &configurations);
    if (fault.ok()) fault = AddPlans(configurations, problem, target, options, plans);
    if (!plans->empty()) return {};
    if (!fault.ok()) last = std::move(fault);
  }
  // Whatever the reason, no plan came of it; the backend has another way.
  last.kind = FaultKind::kUnsupported;
  return last;
}

Fault RunCudnnConvolution(const ConvolutionCall& call) {
  return static_cast<CudnnPlan*>(call.plan)->Run(call);
}

}  // namespace assay::cuda
