// A thread on which things are destroyed.
//
// What holds a channel of gRPC must not be destroyed by a callback of gRPC: the last channel takes
// the queue with it on whose thread the callback runs (gRPC 1.51, CompletionQueue's
// ReleaseCallbackAlternativeCQ), and heap memory is used after it was freed.

#ifndef SERVER_WEB_DISPOSAL_H_
#define SERVER_WEB_DISPOSAL_H_

#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "common/mutex.h"

namespace assay::web {

// Thread-safe.
class Disposal {
 public:
  Disposal() : thread_([this] { Run(); }) {}
  // Destroys what is left. Not on a thread of gRPC.
  ~Disposal();
  Disposal(const Disposal&) = delete;
  Disposal& operator=(const Disposal&) = delete;

  // Lets go of `object` soon, on the thread of this. Does not block.
  void Add(std::shared_ptr<void> object);

 private:
  void Run();

  Mutex mutex_;
  CondVar wake_;
  std::vector<std::shared_ptr<void>> objects_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace assay::web

#endif  // SERVER_WEB_DISPOSAL_H_
