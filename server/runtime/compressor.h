// Compresses the artifacts of submissions that have ended, on a thread of its own that gives way to
// all others.

#ifndef SERVER_RUNTIME_COMPRESSOR_H_
#define SERVER_RUNTIME_COMPRESSOR_H_

#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"

#include "common/mutex.h"

namespace assay::store {
class Compression;
}  // namespace assay::store

namespace assay::runtime {

// Thread-safe. Works from its construction on: first through all that has ended, then every ten
// seconds through what has ended since.
class Compressor {
 public:
  explicit Compressor(std::unique_ptr<store::Compression> compression);
  ~Compressor();
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  // Ends the file that is being compressed, and no other. Idempotent.
  void Stop();

 private:
  void Loop();
  // False if there is nothing to do for now.
  bool Work();
  // Until there may be more to do; false if it is to stop.
  bool Pause(bool is_busy);

  const std::unique_ptr<store::Compression> compression_;

  Mutex mutex_;
  CondVar stopped_;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: starts when all else is there
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_COMPRESSOR_H_
