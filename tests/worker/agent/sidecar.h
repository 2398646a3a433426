// A process beside a run that keeps a file of the dataset in memory.

#ifndef TESTS_WORKER_AGENT_SIDECAR_H_
#define TESTS_WORKER_AGENT_SIDECAR_H_

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "common/log.h"

namespace assay::agent {

enum class Keeps { kMapped, kLocked, kDirty };

// Holds all pages of `path`, which is not empty, from its construction to its destruction.
class Sidecar {
 public:
  Sidecar(const std::string& path, Keeps how) {
    int ready[2];
    CHECK(pipe(ready) == 0);
    pid_ = fork();
    CHECK(pid_ >= 0);
    if (pid_ == 0) {
      Hold(path, how);
      CHECK(write(ready[1], "x", 1) == 1);
      while (true)
        pause();
    }
    close(ready[1]);
    char byte = 0;
    CHECK(read(ready[0], &byte, 1) == 1) << "the sidecar cannot hold " << path;
    close(ready[0]);
  }
  ~Sidecar() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Sidecar(const Sidecar&) = delete;
  Sidecar& operator=(const Sidecar&) = delete;

  pid_t pid() const { return pid_; }

 private:
  static void Hold(const std::string& path, Keeps how) {
    const bool is_dirty = how == Keeps::kDirty;
    const int fd = open(path.c_str(), (is_dirty ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    struct stat info {};
    CHECK(fd >= 0 && fstat(fd, &info) == 0);
    const auto size = static_cast<size_t>(info.st_size);
    void* const map =
        mmap(nullptr, size, PROT_READ | (is_dirty ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED);
    volatile char* const bytes = static_cast<volatile char*>(map);
    for (size_t i = 0; i < size; i += 4096) {
      const char byte = bytes[i];
      if (is_dirty) bytes[i] = byte;
    }
    if (how == Keeps::kLocked) CHECK(mlock(map, size) == 0);
  }

  pid_t pid_ = 0;
};

}  // namespace assay::agent

#endif  // TESTS_WORKER_AGENT_SIDECAR_H_
