#include "worker/engine/backends/cuda/recorder.h"

#include <utility>

#include "common/log.h"
#include "worker/engine/backends/cuda/call_text.h"

namespace assay::cuda {
namespace {

// A section that has not repeated so often in a row is not tried again.
constexpr int kMaxFailures = 3;
// Nor one that the device refused to record.
constexpr int kNeverAgain = kMaxFailures + 1;

// Whether `graph` of `before` can be made to do `after` by changing kernels' arguments.
bool IsUpdate(const Call& before, const Call& after) {
  if (before == after) return true;
  const Kernel* const old_kernel = std::get_if<Kernel>(&before);
  const Kernel* const new_kernel = std::get_if<Kernel>(&after);
  return old_kernel != nullptr && new_kernel != nullptr &&
         old_kernel->index() == new_kernel->index();
}

}  // namespace

Fault Recorder::Begin(int key) {
  CHECK(section_ == nullptr) << "a section inside a section, key=" << key;
  section_ = &sections_[key];
  pending_.clear();
  if (options_.trace != nullptr) options_.trace->Begin(key);
  if (options_.is_call_by_call || options_.trace != nullptr || section_->failures > kMaxFailures) {
    mode_ = Mode::kDirect;
    return {};
  }
  if (section_->graph != nullptr) {
    mode_ = Mode::kReplaying;
    return {};
  }
  // The first run lets libraries load and choose what they use: neither can be recorded.
  mode_ = section_->calls.empty() ? Mode::kFirst : Mode::kRecording;
  return mode_ == Mode::kRecording ? device_->BeginGraph() : Fault{};
}

// To the device, at once.
Fault Recorder::Pass(const Call& call) {
  double microseconds = 0;
  Fault fault =
      options_.trace == nullptr ? device_->Issue(call) : device_->IssueTimed(call, &microseconds);
  if (!fault.ok()) {
    fault.text += "; in " + TextOf(call);
  } else if (options_.trace != nullptr) {
    options_.trace->Add(call, microseconds);
  }
  return fault;
}

Fault Recorder::Issue(const Call& call) {
  switch (mode_) {
    case Mode::kDirect:
      return Pass(call);
    case Mode::kFirst:
      pending_.push_back(call);
      return Pass(call);
    case Mode::kRecording: {
      pending_.push_back(call);
      const Fault fault = Pass(call);
      return fault.ok() ? Fault{} : GiveUp(fault);
    }
    case Mode::kReplaying:
      const size_t index = pending_.size();
      pending_.push_back(call);
      if (index < section_->calls.size() && IsUpdate(section_->calls[index], call)) return {};
      return Flush();
  }
  return {};
}

Fault Recorder::Flush() {
  const Mode mode = std::exchange(mode_, Mode::kDirect);
  if (mode == Mode::kDirect) return {};
  ++section_->failures;
  section_->graph.reset();
  section_->calls.clear();
  if (mode == Mode::kFirst) return {};
  if (mode == Mode::kRecording) {
    std::unique_ptr<Graph> discarded;
    const Fault fault = device_->EndGraph(&discarded);
    if (!fault.ok()) return GiveUp(fault);
  }
  return IssuePending();
}

Fault Recorder::IssuePending() {
  for (const Call& call : pending_) {
    Fault fault = Pass(call);
    if (!fault.ok()) return fault;
  }
  return {};
}

// Nothing of it has run yet. What failed for another reason fails again.
Fault Recorder::GiveUp(const Fault& fault) {
  LOG(WARNING) << "backend=cuda: work cannot be recorded and runs call by call, which is slower "
                  "where maps are small, refused="
               << Quoted(fault.text);
  if (mode_ == Mode::kRecording) {
    std::unique_ptr<Graph> discarded;
    static_cast<void>(device_->EndGraph(&discarded));
  }
  mode_ = Mode::kDirect;
  section_->failures = kNeverAgain;
  section_->graph.reset();
  section_->calls.clear();
  Fault again = IssuePending();
  if (!again.ok()) again.text += "; while it was recorded: " + fault.text;
  return again;
}

Fault Recorder::End() {
  CHECK(section_ != nullptr) << "the end of no section";
  Fault fault;
  switch (std::exchange(mode_, Mode::kDirect)) {
    case Mode::kDirect:
      break;
    case Mode::kFirst:
      section_->calls = std::move(pending_);
      break;
    case Mode::kRecording:
      fault = EndRecording();
      break;
    case Mode::kReplaying:
      fault = EndReplay();
      break;
  }
  section_ = nullptr;
  if (options_.trace != nullptr) options_.trace->End();
  return fault;
}

Fault Recorder::EndRecording() {
  const Fault fault = device_->EndGraph(&section_->graph);
  if (!fault.ok()) return GiveUp(fault);
  section_->calls = std::move(pending_);
  if (section_->calls.empty()) return {};
  return section_->graph->Launch();
}

Fault Recorder::EndReplay() {
  if (pending_.size() != section_->calls.size()) {
    mode_ = Mode::kReplaying;
    return Flush();
  }
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (pending_[i] == section_->calls[i]) continue;
    const Fault fault = section_->graph->Update(i, std::get<Kernel>(pending_[i]));
    if (!fault.ok()) return GiveUp(fault);
  }
  section_->calls.swap(pending_);
  section_->failures = 0;
  ++replays_;
  return section_->graph->Launch();
}

}  // namespace assay::cuda
