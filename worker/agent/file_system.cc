#include "worker/agent/file_system.h"

#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"

namespace assay::agent {
namespace {

enum class Place { kLocal, kMemory, kServer, kElsewhere, kElsewhereOrServer };

struct Kind {
  long type;
  const char* name;
  Place place;
  const char* unknown_cache;  // null: none but the server's
};

constexpr char kDaemonsCache[] = "fuse: what its daemon and what lies behind it keep is not known";
constexpr char kPool[] = "gpfs: its page pool on this node is not the kernel's page cache";

// Numbers as in linux/magic.h, and those of file systems that are not part of the kernel.
constexpr Kind kKinds[] = {
    {0xEF53, "ext4", Place::kLocal, nullptr},
    {0x58465342, "xfs", Place::kLocal, nullptr},
    {0x9123683E, "btrfs", Place::kLocal, nullptr},
    {0xF2F52010, "f2fs", Place::kLocal, nullptr},
    {0x73717368, "squashfs", Place::kLocal, nullptr},
    {0x01021994, "tmpfs", Place::kMemory, nullptr},
    {0x858458F6, "ramfs", Place::kMemory, nullptr},
    {0x958458F6, "hugetlbfs", Place::kMemory, nullptr},
    {0x6969, "nfs", Place::kServer, nullptr},
    {0x0BD00BD0, "lustre", Place::kServer, nullptr},
    {0x19830326, "beegfs", Place::kServer, nullptr},
    {0x00C36400, "ceph", Place::kServer, nullptr},
    {0xFF534D42, "cifs", Place::kServer, nullptr},
    {0xFE534D42, "smb2", Place::kServer, nullptr},
    {0x01021997, "9p", Place::kServer, nullptr},
    {0x47504653, "gpfs", Place::kElsewhereOrServer, kPool},
    {0x2FC12FC1, "zfs", Place::kElsewhere, "zfs: its own cache (ARC) is not the page cache"},
    {0x65735546, "fuse", Place::kElsewhereOrServer, kDaemonsCache},
    {0x794C7630, "overlay", Place::kElsewhere,
     "overlay: pages belong to the files below, which are not looked at"},
};

bool IsVirtualMachine() {
  const absl::StatusOr<std::string> text = ReadFile("/proc/cpuinfo");
  return text.ok() && absl::StrContains(*text, " hypervisor");
}

}  // namespace

FileSystem FileSystemOfType(long type, bool is_virtual) {
  FileSystem result{.type = absl::StrCat("0x", absl::Hex(type))};
  const auto* const kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                        [type](const Kind& k) { return k.type == type; });
  if (kind == std::end(kKinds)) {
    result.unknown_caches.push_back(
        absl::StrCat("file system ", result.type, ": what caches it has is not known"));
    result.may_be_remote = true;
  } else {
    result.type = kind->name;
    result.is_memory = kind->place == Place::kMemory;
    result.is_local = kind->place == Place::kLocal || kind->place == Place::kMemory;
    result.may_be_remote =
        kind->place == Place::kServer || kind->place == Place::kElsewhereOrServer;
    result.is_page_cache =
        kind->place != Place::kElsewhere && kind->place != Place::kElsewhereOrServer;
    if (kind->unknown_cache != nullptr) result.unknown_caches.emplace_back(kind->unknown_cache);
    if (kind->place == Place::kServer)
      result.unknown_caches.push_back(
          absl::StrCat(result.type, ": the server's cache is not reset and not known"));
  }
  if (is_virtual)
    result.unknown_caches.emplace_back(
        "virtual machine: the host's cache is not reset and not known");
  return result;
}

absl::StatusOr<FileSystem> FileSystemOf(const std::string& path) {
  struct statfs info {};
  if (statfs(path.c_str(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot look at ", path));
  return FileSystemOfType(static_cast<long>(static_cast<unsigned int>(info.f_type)),
                          IsVirtualMachine());
}

absl::Status SyncFileSystem(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open() || syncfs(fd.get()) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot sync ", path));
  return absl::OkStatus();
}

}  // namespace assay::agent
