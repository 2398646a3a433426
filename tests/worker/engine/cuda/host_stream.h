// A stream of work on the fake: done at once, or as late as whoever waits for it allows. What is
// not waited for is then missing, as it may be on a GPU.

#ifndef TESTS_WORKER_ENGINE_CUDA_HOST_STREAM_H_
#define TESTS_WORKER_ENGINE_CUDA_HOST_STREAM_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "worker/engine/backends/cuda/device.h"

namespace assay::cuda {

// Not thread-safe.
class HostStream {
 public:
  using Work = std::function<Fault()>;

  void set_is_late(bool is_late) { is_late_ = is_late; }

  // The fault of the work if it is done at once; otherwise who waits for it gets it.
  Fault Add(Work work) {
    work_.push_back(std::move(work));
    ++added_;
    return is_late_ ? Fault{} : Finish();
  }
  // From now on comes after what `other` has been given so far.
  Fault Follow(HostStream* other) {
    return Add([other, position = other->added_] { return other->RunTo(position); });
  }
  Fault Finish() { return RunTo(added_); }

 private:
  Fault RunTo(int64_t position) {
    while (begun_ < position) {
      const Work next = std::move(work_.front());
      work_.pop_front();
      ++begun_;
      Fault fault = next();
      if (!fault.ok()) return fault;
    }
    return {};
  }

  bool is_late_ = false;
  std::deque<Work> work_;
  int64_t added_ = 0, begun_ = 0;
};

}  // namespace assay::cuda

#endif  // TESTS_WORKER_ENGINE_CUDA_HOST_STREAM_H_
