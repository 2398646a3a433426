// Waits at a pipe, which ReadFile of the product refuses to do.

#ifndef TESTS_SUPPORT_AWAIT_WRITER_H_
#define TESTS_SUPPORT_AWAIT_WRITER_H_

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>

#include "common/file.h"
#include "common/log.h"

namespace assay::testing {

// Blocks until somebody has opened the named pipe at `path` for writing and closed it.
inline void AwaitWriter(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  CHECK(fd.is_open()) << "path=" << path;
  std::array<char, 256> buffer{};
  while (read(fd.get(), buffer.data(), buffer.size()) > 0) {
  }
}

}  // namespace assay::testing

#endif  // TESTS_SUPPORT_AWAIT_WRITER_H_
