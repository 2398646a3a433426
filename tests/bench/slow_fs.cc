// A read-only view of a directory with a shared file system's latency: each open and each read
// waits before it is served, any number of them side by side. Written on libfuse 3.
//
// Usage: slow_fs DIRECTORY MOUNTPOINT MILLISECONDS; in the foreground until SIGTERM, which
// unmounts.

#define FUSE_USE_VERSION 31

#include <dirent.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace {

// As Lustre's and NFS's clients ask for it.
constexpr unsigned kRequestBytes = 1 << 20;
constexpr char kOptions[] = "ro,allow_other,max_read=1048576,max_threads=160,max_idle_threads=160";

struct View {
  std::string root;
  absl::Duration latency;

  static const View& Get() { return *static_cast<View*>(fuse_get_context()->private_data); }
  std::string Below(const char* path) const { return absl::StrCat(root, path); }
};

void* Init(fuse_conn_info* connection, fuse_config*) {
  connection->max_read = kRequestBytes;
  connection->max_readahead = kRequestBytes;
  connection->max_background = 256;
  connection->congestion_threshold = 192;
  return fuse_get_context()->private_data;
}

int GetAttributes(const char* path, struct stat* info, fuse_file_info*) {
  return lstat(View::Get().Below(path).c_str(), info) == 0 ? 0 : -errno;
}

int ReadFolder(const char* path, void* entries, fuse_fill_dir_t fill, off_t, fuse_file_info*,
               fuse_readdir_flags) {
  DIR* const folder = opendir(View::Get().Below(path).c_str());
  if (folder == nullptr) return -errno;
  while (const dirent* entry = readdir(folder))
    fill(entries, entry->d_name, nullptr, 0, fuse_fill_dir_flags{});
  closedir(folder);
  return 0;
}

int Open(const char* path, fuse_file_info* file) {
  absl::SleepFor(View::Get().latency);
  const int fd = open(View::Get().Below(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -errno;
  file->fh = static_cast<uint64_t>(fd);
  return 0;
}

int Read(const char*, char* buffer, size_t bytes, off_t offset, fuse_file_info* file) {
  absl::SleepFor(View::Get().latency);
  const ssize_t n = pread(static_cast<int>(file->fh), buffer, bytes, offset);
  return n < 0 ? -errno : static_cast<int>(n);
}

int Release(const char*, fuse_file_info* file) {
  close(static_cast<int>(file->fh));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int milliseconds = 0;
  if (argc != 4 || !absl::SimpleAtoi(argv[3], &milliseconds)) {
    std::fprintf(stderr, "usage: slow_fs DIRECTORY MOUNTPOINT MILLISECONDS\n");
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // a bench that is killed leaves no mount
  View view = {.root = argv[1], .latency = absl::Milliseconds(milliseconds)};
  fuse_operations operations = {};
  operations.getattr = GetAttributes;
  operations.open = Open;
  operations.read = Read;
  operations.release = Release;
  operations.readdir = ReadFolder;
  operations.init = Init;
  std::string options = kOptions, foreground = "-f", option = "-o";
  char* arguments[] = {argv[0], argv[2], foreground.data(), option.data(), options.data(), nullptr};
  return fuse_main(5, arguments, &operations, &view);
}
