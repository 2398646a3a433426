// What a program under test writes, read while it runs.

#ifndef TESTS_SUPPORT_LOG_TAIL_H_
#define TESTS_SUPPORT_LOG_TAIL_H_

#include <deque>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"

#include "common/mutex.h"

namespace assay::testing {

// The lines that a program writes, as they come.
class LogTail {
 public:
  explicit LogTail(std::string fifo_path);
  ~LogTail();
  // The path to give to the program as its output.
  const std::string& path() const { return path_; }
  // Waits for a line with `text` that nobody has waited for yet, dropping those before it.
  // nullopt after two minutes.
  std::optional<std::string> WaitFor(absl::string_view text);

 private:
  void Run();

  const std::string path_;
  std::fstream stream_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace assay::testing

#endif  // TESTS_SUPPORT_LOG_TAIL_H_
