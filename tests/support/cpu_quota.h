// A share of the processors for a process and all that it starts, by the kernel's control groups.

#ifndef TESTS_SUPPORT_CPU_QUOTA_H_
#define TESTS_SUPPORT_CPU_QUOTA_H_

#include <sys/types.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/file.h"

namespace assay::testing {

// Needs root and a writable hierarchy of version 1 or 2.
class CpuQuota {
 public:
  // nullopt where this machine cannot: the test is to be skipped.
  static std::optional<CpuQuota> Make(double cores) {
    const std::string quota = absl::StrCat(static_cast<int>(cores * 100'000));
    const std::string name = absl::StrCat("assay_test_", getpid());
    if (FileExists("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"))
      return MakeAt("/sys/fs/cgroup/cpu/" + name, "cpu.cfs_quota_us", quota);
    return MakeAt("/sys/fs/cgroup/" + name, "cpu.max", quota + " 100000");
  }

  ~CpuQuota() {
    if (!path_.empty()) rmdir(path_.c_str());  // once what was in it has ended
  }
  CpuQuota(CpuQuota&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  CpuQuota(const CpuQuota&) = delete;
  CpuQuota& operator=(const CpuQuota&) = delete;

  bool Add(pid_t pid) const { return Write(JoinPath(path_, "cgroup.procs"), absl::StrCat(pid)); }

 private:
  explicit CpuQuota(std::string path) : path_(std::move(path)) {}

  static bool Write(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text << std::flush;
    return file.good();
  }

  static std::optional<CpuQuota> MakeAt(const std::string& path, const std::string& file,
                                        const std::string& quota) {
    if (!MakeDirectories(path).ok() || !Write(JoinPath(path, file), quota)) {
      rmdir(path.c_str());
      return std::nullopt;
    }
    return CpuQuota(path);
  }

  std::string path_;
};

}  // namespace assay::testing

#endif  // TESTS_SUPPORT_CPU_QUOTA_H_
