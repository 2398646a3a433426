// A directory that lives as long as the object.

#ifndef TESTS_SUPPORT_TEMP_DIR_H_
#define TESTS_SUPPORT_TEMP_DIR_H_

#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"

#include "common/file.h"
#include "common/log.h"

namespace assay::testing {

class TempDir {
 public:
  TempDir() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base == nullptr ? "/tmp" : base) + "/assay_test_XXXXXX";
    CHECK(mkdtemp(path_.data()) != nullptr) << "path=" << path_;
  }
  ~TempDir() { CHECK_OK(RemoveTree(path_)); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string Path(absl::string_view name) const { return JoinPath(path_, name); }

 private:
  std::string path_;
};

}  // namespace assay::testing

#endif  // TESTS_SUPPORT_TEMP_DIR_H_
