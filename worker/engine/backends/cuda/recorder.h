// Turns work that repeats into recordings: the second time it is recorded, from the third on it is
// replayed with one launch.
//
// A step of training issues a hundred small calls; at small batches starting them takes longer than
// running them. Replaying needs no knowledge of what a step is: the layers run as always, and each
// call is compared with the recording. Kernels that differ only in their arguments (learning rate,
// dropout's place in its stream) are updated in place; anything else that differs, or work that
// must be waited for in the middle, makes the section run call by call, as the first time. So does
// a device that cannot record a call, and then for good.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_RECORDER_H_
#define WORKER_ENGINE_BACKENDS_CUDA_RECORDER_H_

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "worker/engine/backends/cuda/call_trace.h"
#include "worker/engine/backends/cuda/device.h"

namespace assay::cuda {

struct RecorderOptions {
  bool is_call_by_call = false;  // nothing is recorded: a fault is of the call that reports it
  CallTrace* trace = nullptr;    // of all calls, each waited for; implies the above
};

// Faults of calls name them (TextOf). Not thread-safe. `device` and the trace must outlive it.
class Recorder {
 public:
  explicit Recorder(Device* device, const RecorderOptions& options = {})
      : device_(device), options_(options) {}

  // Begins a section of work that is much the same each time it is begun with this key.
  Fault Begin(int key);
  // Ends it; now at the latest its work is under way.
  Fault End();
  // Passes a call on, now or at the end of the section.
  Fault Issue(const Call& call);
  // Starts what is held back: must come before anything that does not go through Issue.
  Fault Flush();

  // Whether calls do not reach the device as they come: then nothing else may, without Flush.
  bool is_holding_back() const { return mode_ == Mode::kRecording || mode_ == Mode::kReplaying; }

  // Sections replayed so far, for tests and logs.
  int64_t replays() const { return replays_; }

 private:
  enum class Mode { kDirect, kFirst, kRecording, kReplaying };

  struct Section {
    std::vector<Call> calls;       // of the last complete run
    std::unique_ptr<Graph> graph;  // of `calls`, or null
    int failures = 0;              // how often in a row it did not repeat
  };

  Fault EndRecording();
  Fault EndReplay();
  Fault Pass(const Call& call);
  Fault IssuePending();
  Fault GiveUp(const Fault& fault);

  Device* const device_;
  const RecorderOptions options_;
  std::map<int, Section> sections_;
  Mode mode_ = Mode::kDirect;
  Section* section_ = nullptr;
  std::vector<Call> pending_;  // of this run
  int64_t replays_ = 0;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_RECORDER_H_
