// A file of the kernel's that is read again and again.

#ifndef WORKER_AGENT_TELEMETRY_KERNEL_FILE_H_
#define WORKER_AGENT_TELEMETRY_KERNEL_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/file.h"

namespace assay::agent {

// Not thread-safe.
class KernelFile {
 public:
  explicit KernelFile(const std::string& path);

  bool is_open() const { return file_.is_open(); }
  // Its text now, until the next call; empty if it cannot be read.
  absl::string_view Read();
  // The one number that it holds.
  std::optional<int64_t> ReadNumber();

 private:
  UniqueFd file_;
  std::string text_;
};

// The words of a line.
std::vector<absl::string_view> WordsOf(absl::string_view line);

// kMissing if it is no number.
int64_t NumberOf(absl::string_view word);

}  // namespace assay::agent

#endif  // WORKER_AGENT_TELEMETRY_KERNEL_FILE_H_
