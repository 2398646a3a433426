// A file that is never on a disk, for readers that want a path thousands of times.

#ifndef TESTS_FUZZ_MEMORY_FILE_H_
#define TESTS_FUZZ_MEMORY_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/file.h"
#include "common/log.h"

namespace assay::testing {

class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    CHECK(fd_.is_open());
    path_ = absl::StrCat("/proc/self/fd/", fd_.get());
  }

  const std::string& path() const { return path_; }

  void Replace(absl::string_view bytes) {
    CHECK(ftruncate(fd_.get(), 0) == 0 && lseek(fd_.get(), 0, SEEK_SET) == 0);
    CHECK_OK(WriteAll(fd_.get(), bytes));
  }

 private:
  UniqueFd fd_;
  std::string path_;
};

}  // namespace assay::testing

#endif  // TESTS_FUZZ_MEMORY_FILE_H_
