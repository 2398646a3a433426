// A file with a line for each call that a device was given: for people who look for what is slow or
// wrong.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_CALL_TRACE_H_
#define WORKER_ENGINE_BACKENDS_CUDA_CALL_TRACE_H_

#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

#include "worker/engine/backends/cuda/device.h"

namespace assay::cuda {

// Columns with tabs between them: the section of work (Backend::BeginSection; -1: none) and which
// time it is run, from 0; microseconds on the device; GB/s and TFLOP/s where the work is known,
// else "-"; the call (TextOf). Not thread-safe.
class CallTrace {
 public:
  // Replaces the file. INVALID_ARGUMENT: it cannot be written.
  static absl::StatusOr<std::unique_ptr<CallTrace>> Open(const std::string& path);

  void Begin(int section);
  void End() { section_ = -1; }
  // Is in the file when it returns, so that it is there if the next call ends the process.
  void Add(const Call& call, double microseconds);

 private:
  explicit CallTrace(std::ofstream file) : file_(std::move(file)) {}

  std::ofstream file_;
  int section_ = -1;
  std::map<int, int64_t> runs_;  // of each section, begun
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_CALL_TRACE_H_
