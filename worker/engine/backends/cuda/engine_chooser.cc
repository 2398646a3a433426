#include "worker/engine/backends/cuda/engine_chooser.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/log.h"
#include "worker/engine/backends/cuda/call_text.h"
#include "worker/engine/backends/cuda/plan.h"

namespace assay::cuda {
namespace {

// What is far down the library's list is not quick. Engines with an epilogue are compiled when they
// are planned, a second each. How maxima are numbered was tried of the first only (pooled_trial.h).
int MostCandidates(Epilogue epilogue) {
  if (epilogue == Epilogue::kLeakyPool) return 1;
  return epilogue == Epilogue::kNone ? 8 : 4;
}

constexpr int kTimedRuns = 3;

// Of a tensor with these extents and strides.
size_t TensorBytes(const std::array<int64_t, 5>& extents, const std::array<int64_t, 5>& strides,
                   Precision precision) {
  int64_t last = 0;
  for (size_t axis = 0; axis < extents.size(); ++axis)
    last += (extents[axis] - 1) * strides[axis];
  return static_cast<size_t>(last + 1) * BytesOf(precision);
}

// Memory for all candidates of one problem, which follow each other. All zeros.
class TrialMemory {
 public:
  explicit TrialMemory(Device* device) : device_(device) {}
  ~TrialMemory() {
    for (void* const each : memory_)
      device_->Free(each);
  }
  TrialMemory(const TrialMemory&) = delete;
  TrialMemory& operator=(const TrialMemory&) = delete;

  Fault Allocate(const ConvolutionProblem& p, size_t workspace_bytes) {
    const size_t channels = static_cast<size_t>(p.y[1]) * sizeof(float);
    const size_t sizes[] = {TensorBytes(p.x, p.x_strides, p.precision),
                            TensorBytes(p.w, p.w_strides, p.precision),
                            TensorBytes(p.y, p.y_strides, p.precision),
                            std::max(workspace_bytes, size_t{1}),
                            channels,
                            channels,
                            TensorBytes(p.y, p.y_strides, p.precision)};
    for (const size_t bytes : sizes) {
      void* memory = nullptr;
      Fault fault = device_->Allocate(bytes, &memory);
      if (!fault.ok()) return fault;
      memory_.push_back(memory);
    }
    return {};
  }

  ConvolutionCall CallOf(ConvolutionPlan* plan) const {
    const Epilogue epilogue = plan->problem().epilogue;
    const bool has_pool = epilogue == Epilogue::kLeakyPool;
    const bool has_addend = epilogue != Epilogue::kNone, has_factor = has_addend && !has_pool;
    return {.plan = plan,
            .x = memory_[0],
            .w = memory_[1],
            .y = memory_[2],
            .workspace = memory_[3],
            .factor = has_factor ? static_cast<float*>(memory_[4]) : nullptr,
            .addend = has_addend ? static_cast<float*>(memory_[5]) : nullptr,
            .places = has_pool ? static_cast<uint8_t*>(memory_[6]) : nullptr};
  }

 private:
  Device* const device_;
  std::vector<void*> memory_;
};

// What was chosen belongs to a run's evidence, and tells two runs' speeds apart.
void LogChoice(const ConvolutionPlan& plan, const EngineChoice& choice, absl::string_view by) {
  LOG(INFO) << "backend=cuda convolution=" << Quoted(TextOf(plan.problem())) << " "
            << plan.Describe() << " workspace_bytes=" << plan.workspace_bytes()
            << " configuration=" << Quoted(plan.Identity()) << " chosen=" << by
            << " microseconds=" << choice.microseconds
            << " candidates_timed=" << choice.candidates_timed;
}

}  // namespace

std::string KeyOf(const ConvolutionProblem& problem) {
  std::string key = absl::StrCat(TextOf(problem), " before=", absl::StrJoin(problem.before, ","),
                                 " after=", absl::StrJoin(problem.after, ","));
  if (problem.epilogue == Epilogue::kLeakyPool) absl::StrAppend(&key, " slope=", problem.slope);
  if (problem.max_workspace != ConvolutionProblem().max_workspace)
    absl::StrAppend(&key, " workspace_max=", problem.max_workspace);
  return key;
}

EngineChooser::EngineChooser(Device* device, const Options& options)
    : device_(device), is_timed_(options.is_timed) {
  const EngineChoices& stored = options.stored;
  if (!is_timed_ || stored.choices.empty()) return;
  if (stored.device != device->Model() || stored.library != device->Library()) {
    LOG(WARNING) << "backend=cuda stored engines are not taken: they are of "
                 << Quoted(absl::StrCat(stored.device, ", ", stored.library)) << ", this is "
                 << Quoted(absl::StrCat(device->Model(), ", ", device->Library()));
    return;
  }
  for (const EngineChoice& choice : stored.choices)
    stored_[choice.convolution] = choice;
}

Fault EngineChooser::Plan(const ConvolutionProblem& problem,
                          std::unique_ptr<ConvolutionPlan>* plan) {
  if (!is_timed_) return TakeFirst(problem, plan);
  const std::string key = KeyOf(problem);
  if (TakeKnown(problem, key, plan)) return {};
  Plans candidates;
  Fault fault =
      device_->PlanConvolutions(problem, {.most = MostCandidates(problem.epilogue)}, &candidates);
  if (!fault.ok()) return fault;
  EngineChoice choice = {.convolution = key};
  *plan = std::move(candidates[TakeQuickest(candidates, &choice)]);
  choice.engine = (*plan)->Identity();
  if (const auto gone = stored_.find(key); gone != stored_.end())
    LOG(WARNING) << "backend=cuda convolution=" << Quoted(key) << ": the stored engine "
                 << Quoted(gone->second.engine)
                 << " is not offered; taken instead: " << Quoted(choice.engine);
  if (!chosen_.contains(key)) order_.push_back(key);
  chosen_[key] = choice;
  LogChoice(**plan, choice, choice.candidates_timed > 0 ? "timed" : "first");
  return {};
}

// False: nothing is known of the problem, or what is known is not to be had.
bool EngineChooser::TakeKnown(const ConvolutionProblem& problem, const std::string& key,
                              std::unique_ptr<ConvolutionPlan>* plan) {
  for (auto* const known : {&chosen_, &stored_}) {
    const auto found = known->find(key);
    if (found == known->end()) continue;
    const EngineChoice choice = found->second;
    Plans plans;
    if (!device_->PlanConvolutions(problem, {.identity = choice.engine}, &plans).ok()) return false;
    *plan = std::move(plans.front());
    LogChoice(**plan, choice, known == &stored_ ? "stored" : "before");
    if (chosen_.emplace(key, choice).second) order_.push_back(key);
    return true;
  }
  return false;
}

Fault EngineChooser::TakeFirst(const ConvolutionProblem& problem,
                               std::unique_ptr<ConvolutionPlan>* plan) {
  Plans plans;
  Fault fault = device_->PlanConvolutions(problem, {}, &plans);
  if (!fault.ok()) return fault;
  *plan = std::move(plans.front());
  LogChoice(**plan, {}, "first");
  return {};
}

// Its index.
size_t EngineChooser::TakeQuickest(const Plans& candidates, EngineChoice* choice) {
  const ConvolutionProblem& problem = candidates.front()->problem();
  size_t workspace_bytes = 0;
  for (const auto& plan : candidates)
    workspace_bytes = std::max(workspace_bytes, plan->workspace_bytes());
  TrialMemory memory(device_);
  if (const Fault fault = memory.Allocate(problem, workspace_bytes); !fault.ok()) {
    LOG(WARNING) << "backend=cuda convolution=" << Quoted(choice->convolution)
                 << ": no memory to time its engines, so the library's first is taken; fault="
                 << Quoted(fault.text);
    return 0;
  }
  size_t quickest = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    double microseconds = 0;
    const Fault fault = TimeCandidate(memory.CallOf(candidates[i].get()), &microseconds);
    if (!fault.ok()) {
      LOG(WARNING) << "backend=cuda convolution=" << Quoted(choice->convolution) << ": left out is "
                   << Quoted(candidates[i]->Identity()) << ", which failed: " << Quoted(fault.text);
      continue;
    }
    if (choice->candidates_timed++ == 0 || microseconds < choice->microseconds) {
      quickest = i;
      choice->microseconds = microseconds;
    }
  }
  return quickest;
}

// The first run, which may load code, does not count.
Fault EngineChooser::TimeCandidate(const ConvolutionCall& call, double* microseconds) {
  Fault fault = device_->IssueTimed(call, microseconds);
  for (int run = 0; fault.ok() && run < kTimedRuns; ++run) {
    double again = 0;
    fault = device_->IssueTimed(call, &again);
    *microseconds = run == 0 ? again : std::min(*microseconds, again);
  }
  return fault;
}

EngineChoices EngineChooser::made() const {
  if (!is_timed_) return {};
  EngineChoices made = {.device = device_->Model(), .library = device_->Library()};
  for (const std::string& key : order_)
    made.choices.push_back(chosen_.at(key));
  return made;
}

}  // namespace assay::cuda
