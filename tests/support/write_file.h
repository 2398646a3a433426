// Writes a file for a test, without waiting for the disk as the product's writers do.

#ifndef TESTS_SUPPORT_WRITE_FILE_H_
#define TESTS_SUPPORT_WRITE_FILE_H_

#include <fcntl.h>

#include <string>

#include "absl/strings/string_view.h"

#include "common/file.h"
#include "common/log.h"

namespace assay::testing {

// Replaces the content of `path`.
inline void WriteFile(const std::string& path, absl::string_view content) {
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  CHECK(fd.is_open()) << "path=" << path;
  CHECK_OK(WriteAll(fd.get(), content));
}

}  // namespace assay::testing

#endif  // TESTS_SUPPORT_WRITE_FILE_H_
