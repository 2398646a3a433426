#include "worker/comm/shared_area.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/log.h"
#include "common/secret.h"

namespace assay::comm {
namespace {

constexpr size_t kPageBytes = 4096;

size_t LinesBytes(int world_size) {
  const size_t bytes = static_cast<size_t>(world_size) * sizeof(SharedArea::Line);
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

size_t AreaBytes(int world_size) {
  return LinesBytes(world_size) + static_cast<size_t>(world_size) * 2 * SharedArea::kSlotBytes;
}

absl::StatusOr<void*> Map(int fd, int world_size) {
  void* const mapping =
      mmap(nullptr, AreaBytes(world_size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapping == MAP_FAILED) return absl::ErrnoToStatus(errno, "mapping shared memory");
  return mapping;
}

}  // namespace

SharedArea::SharedArea(std::string name, bool is_maker, int world_size, void* mapping)
    : name_(std::move(name)),
      is_maker_(is_maker),
      world_size_(world_size),
      mapping_(static_cast<std::byte*>(mapping)),
      lines_(static_cast<Line*>(mapping)) {}

SharedArea::~SharedArea() {
  TakeNameAway();
  munmap(mapping_, AreaBytes(world_size_));
}

absl::StatusOr<std::unique_ptr<SharedArea>> SharedArea::Create(int world_size) {
  CHECK(world_size >= 1 && world_size <= kRanksMax) << "world_size=" << world_size;
  const std::string name = absl::StrCat("/assay-", absl::BytesToHexString(RandomBytes(16)));
  const UniqueFd fd(shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd.get() < 0) return absl::ErrnoToStatus(errno, "making shared memory in /dev/shm");
  // With room for all of it: a write into a file without would be the process's end.
  const int error = posix_fallocate(fd.get(), 0, static_cast<off_t>(AreaBytes(world_size)));
  absl::StatusOr<void*> mapping =
      error == 0 ? Map(fd.get(), world_size)
                 : absl::ErrnoToStatus(error, absl::StrCat("/dev/shm has no room for ",
                                                           AreaBytes(world_size), " bytes"));
  if (!mapping.ok()) {
    shm_unlink(name.c_str());
    return mapping.status();
  }
  // Fresh pages are zeros: no step has been taken.
  return std::unique_ptr<SharedArea>(new SharedArea(name, /*is_maker=*/true, world_size, *mapping));
}

absl::StatusOr<std::unique_ptr<SharedArea>> SharedArea::Open(const std::string& name,
                                                             int world_size) {
  const UniqueFd fd(shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0));
  if (fd.get() < 0) return absl::ErrnoToStatus(errno, absl::StrCat("opening shared memory ", name));
  absl::StatusOr<void*> mapping = Map(fd.get(), world_size);
  if (!mapping.ok()) return mapping.status();
  return std::unique_ptr<SharedArea>(
      new SharedArea(name, /*is_maker=*/false, world_size, *mapping));
}

void SharedArea::TakeNameAway() {
  if (std::exchange(is_maker_, false)) shm_unlink(name_.c_str());
}

std::span<std::byte> SharedArea::Slot(int rank, uint64_t step) const {
  const size_t index = 2 * static_cast<size_t>(rank) + step % 2;
  return {mapping_ + LinesBytes(world_size_) + index * kSlotBytes, kSlotBytes};
}

}  // namespace assay::comm
