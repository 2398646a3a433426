#include "worker/agent/gate.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/clock.h"
#include "common/daemon.h"
#include "common/file.h"
#include "common/log.h"
#include "common/process.h"
#include "common/status.h"
#include "worker/agent/block_devices.h"
#include "worker/agent/cold_start.h"
#include "worker/agent/device_reads.h"
#include "worker/agent/gate_record.h"
#include "worker/agent/residency.h"
#include "worker/privileged/fanotify_group.h"
#include "worker/privileged/helper.h"

namespace assay::agent {
namespace {

// Of linux/fanotify.h since 6.14.
constexpr uint64_t kPreAccess = 0x0010'0000;

constexpr size_t kHeldFilesMax = 8'192;                         // 2 to 9 us each, within the budget
constexpr rlim_t kOtherDescriptors = 1'024;                     // rings, events that are read
constexpr absl::Duration kLookBudget = absl::Milliseconds(30);  // while readers wait
constexpr absl::Duration kRangesBudget = absl::Seconds(30);
constexpr int64_t kStatSectorBytes = 512;

size_t HeldFilesMax() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur <= kOtherDescriptors
             ? 0
             : std::min<size_t>(kHeldFilesMax, limit.rlim_cur - kOtherDescriptors);
}

// Files that are looked at while nothing may be opened: open from before.
class HeldFiles {
 public:
  HeldFiles(std::vector<std::string> files, uint64_t seed) : file_count_(files.size()) {
    std::mt19937_64 random(seed);
    std::shuffle(files.begin(), files.end(), random);
    const size_t goal = std::min(files.size(), HeldFilesMax());
    for (size_t i = 0; i < goal; ++i) {
      absl::StatusOr<UniqueFd> file = OpenRegularFile(files[i]);
      struct stat info {};
      if (!file.ok() || fstat(file->get(), &info) != 0) continue;
      if (file_systems_.insert(info.st_dev).second) AddDevicesOf(file->get());
      held_.push_back({*std::move(file), info.st_size, 0});
    }
  }

  // What is there before the gate is closed.
  void Count() {
    for (Held& held : held_) {
      const absl::StatusOr<PageCounts> pages = CountPages(held.fd.get());
      held.armed_pages = pages.ok() ? pages->resident : -1;
      if (!pages.ok() && why_unchecked_.empty())
        why_unchecked_ = std::string(pages.status().message());
    }
  }

  // Adds what is there now.
  void Look(const Clock& clock, GateRecord* record) const {
    const MonoTime deadline = clock.Mono() + kLookBudget;
    record->file_count = static_cast<int64_t>(file_count_);
    record->why_unchecked = why_unchecked_;
    for (const Held& held : held_) {
      if (clock.Mono() >= deadline) return;
      if (held.armed_pages < 0) continue;
      const absl::StatusOr<PageCounts> pages = CountPages(held.fd.get());
      if (!pages.ok()) continue;
      ++record->checked_files;
      record->checked_bytes += held.bytes;
      record->armed_pages += held.armed_pages;
      record->resident_pages += pages->resident;
    }
  }

  int64_t EstimatedBytes() const {
    int64_t bytes = 0;
    for (const Held& held : held_)
      bytes += held.bytes;
    return held_.empty()
               ? 0
               : bytes / static_cast<int64_t>(held_.size()) * static_cast<int64_t>(file_count_);
  }

  // Bytes that the devices below the files have read since they were made; nullopt if they do not
  // say.
  std::optional<int64_t> DeviceBytes() const {
    if (!are_devices_known_ || devices_.empty()) return std::nullopt;
    int64_t bytes = 0;
    for (const dev_t device : devices_) {
      const absl::StatusOr<std::string> text =
          ReadFile(absl::StrCat("/sys/dev/block/", major(device), ":", minor(device), "/stat"));
      if (!text.ok()) return std::nullopt;
      const std::vector<std::string> fields = absl::StrSplit(*text, ' ', absl::SkipEmpty());
      int64_t sectors = 0;
      if (fields.size() < 3 || !absl::SimpleAtoi(fields[2], &sectors)) return std::nullopt;
      bytes += sectors * kStatSectorBytes;
    }
    return bytes;
  }

 private:
  struct Held {
    UniqueFd fd;
    int64_t bytes = 0;
    int64_t armed_pages = 0;  // -1: not known
  };
  void AddDevicesOf(int fd) {
    const std::vector<dev_t> devices = BlockDevicesOf(fd);
    are_devices_known_ = are_devices_known_ && !devices.empty();
    devices_.insert(devices.begin(), devices.end());
  }

  size_t file_count_;
  std::vector<Held> held_;
  std::set<dev_t> file_systems_;
  std::set<dev_t> devices_;        // below them
  bool are_devices_known_ = true;  // of all of them
  std::string why_unchecked_;
};

struct Barrier {
  UniqueFd fd;
  const char* name = "";
};

struct Guarded {
  bool are_copies = false;
  std::vector<std::string> roots;
};

// Of folders alone: a mark on a file system would hold everybody's reads there.
absl::StatusOr<UniqueFd> Mark(unsigned kind, uint64_t mask,
                              const std::vector<std::string>& folders) {
  UniqueFd fd(
      fanotify_init(kind | FAN_CLOEXEC | FAN_NONBLOCK | FAN_UNLIMITED_MARKS | FAN_UNLIMITED_QUEUE,
                    O_RDONLY | O_LARGEFILE | O_CLOEXEC));
  if (!fd.is_open()) return privileged::WatchError("(fanotify_init)");
  for (const std::string& folder : folders)
    if (fanotify_mark(fd.get(), FAN_MARK_ADD, mask | FAN_EVENT_ON_CHILD, AT_FDCWD,
                      folder.c_str()) != 0)
      return privileged::WatchError(folder);
  return fd;
}

// The newer kind also holds who maps a file; and who writes, which copies are made by.
absl::StatusOr<Barrier> CloseBarrier(const Guarded& guarded) {
  ASSIGN_OR_RETURN(const std::vector<std::string> folders, privileged::WithChildren(guarded.roots));
  uint64_t mask = FAN_ACCESS_PERM;
  if (!guarded.are_copies) {
    absl::StatusOr<UniqueFd> fd = Mark(FAN_CLASS_PRE_CONTENT, kPreAccess | FAN_OPEN_PERM, folders);
    if (fd.ok()) return Barrier{*std::move(fd), "pre-access events"};
    LOG(INFO) << "no pre-access events, trying permission events: " << fd.status();
    mask |= FAN_OPEN_PERM;
  }
  ASSIGN_OR_RETURN(UniqueFd older, Mark(FAN_CLASS_CONTENT, mask, folders));
  return Barrier{std::move(older), "permission events"};
}

std::string TargetOfDescriptor(int fd) {
  std::error_code error;
  return std::filesystem::read_symlink(absl::StrCat("/proc/self/fd/", fd), error).string();
}

class Gate {
 public:
  Gate(pid_t run, int socket, Guarded guarded)
      : run_(run), socket_(socket), guarded_(std::move(guarded)) {}

  absl::Status Close(const std::string& drop_caches_path) {
    if (guarded_.are_copies) {
      ASSIGN_OR_RETURN(barrier_, CloseBarrier(guarded_));
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(std::vector<std::string> files, ListFilesBelow(guarded_.roots));
    absl::StatusOr<std::vector<DeviceRange>> ranges = RangesOf(files, kRangesBudget, clock_);
    // Finding them has loaded the inodes, which the run is to read from storage.
    if (!drop_caches_path.empty())
      privileged::DropCaches(drop_caches_path, privileged::kInodes).IgnoreError();
    held_.emplace(std::move(files), RandomSeed());
    WatchDevices(std::move(ranges));
    // Before the barrier: what comes in between is not of the time before.
    held_->Count();
    if (reads_.has_value()) reads_->Take();
    armed_exact_bytes_ = reads_.has_value() ? reads_->bytes() : 0;
    armed_device_bytes_ = held_->DeviceBytes();
    ASSIGN_OR_RETURN(barrier_, CloseBarrier(guarded_));
    return absl::OkStatus();
  }

  // Until the first reader of the run has come, or the step has gone.
  void Watch() {
    const sched_param lowest{.sched_priority = 1};
    sched_setscheduler(0, SCHED_FIFO, &lowest);  // where it is allowed: others wait for it
    MonoTime beat_at = clock_.Mono();
    while (!is_over_) {
      if (clock_.Mono() >= beat_at) {
        if (IsHeard() && !Send(kGateBeat)) return;
        beat_at = clock_.Mono() + kGateBeatInterval;
      }
      std::vector<pollfd> entries{{barrier_.fd.get(), POLLIN, 0}};
      if (reads_.has_value())
        for (const int fd : reads_->fds())
          entries.push_back({fd, POLLIN, 0});
      const absl::Duration left = std::max(absl::ZeroDuration(), beat_at - clock_.Mono());
      poll(entries.data(), entries.size(), static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
      Answer();
      if (reads_.has_value()) reads_->Take();
    }
  }

  // Beats that nobody takes, as from a step that stands still, would leave no room for the record.
  bool IsHeard() const {
    int waiting = 0;
    return ioctl(socket_, SIOCOUTQ, &waiting) != 0 || waiting == 0;
  }

  bool Send(absl::string_view message) const {
    return send(socket_, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
           errno == EAGAIN;
  }

 private:
  void WatchDevices(absl::StatusOr<std::vector<DeviceRange>> ranges) {
    absl::StatusOr<DeviceReads> reads =
        ranges.ok() ? DeviceReads::Watch(*std::move(ranges)) : ranges.status();
    if (reads.ok())
      reads_ = *std::move(reads);
    else
      why_inexact_ = std::string(reads.status().message());
  }

  void Answer() {
    // Each event that is read has a descriptor; where there is none left the kernel turns its
    // reader away.
    alignas(fanotify_event_metadata) std::array<char, 4 << 10> buffer{};
    for (;;) {
      const ssize_t count = read(barrier_.fd.get(), buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return;
      const Stamp stamp = StampNow(clock_);
      absl::string_view bytes(buffer.data(), static_cast<size_t>(count));
      while (bytes.size() >= sizeof(fanotify_event_metadata)) {
        fanotify_event_metadata event{};
        std::memcpy(&event, bytes.data(), sizeof(event));
        if (event.event_len < sizeof(event) || event.event_len > bytes.size()) break;
        bytes.remove_prefix(event.event_len);
        const UniqueFd file(event.fd);
        Judge(event, stamp);
        const fanotify_response allow{event.fd, FAN_ALLOW};
        if (file.is_open() && write(barrier_.fd.get(), &allow, sizeof(allow)) < 0)
          LOG(ERROR) << "a reader was not let in: " << strerror(errno);
      }
      if (is_over_) return;
    }
  }

  void Judge(const fanotify_event_metadata& event, const Stamp& stamp) {
    if (is_over_ || event.pid == getpid()) return;
    if (!IsDescendant(event.pid, run_)) {
      ++others_count_;
      return;
    }
    is_over_ = true;
    GateRecord record{.path = TargetOfDescriptor(event.fd),
                      .held_by = barrier_.name,
                      .access = (event.mask & FAN_OPEN_PERM) != 0 ? "open" : "read",
                      .pid = event.pid,
                      .process = std::string(absl::StripAsciiWhitespace(
                          ReadFile(absl::StrCat("/proc/", event.pid, "/comm")).value_or(""))),
                      .stamp = stamp,
                      .are_copies = guarded_.are_copies,
                      .others_count = others_count_};
    guarded_.are_copies ? LookAtCopies(&record) : LookAtDataset(&record);
    record.held_us = (clock_.Mono().ns - stamp.mono_ns) / 1000;
    Send(GateRecordJson(record));
  }

  // They came after the gate was closed. Opening them is nothing that it holds.
  void LookAtCopies(GateRecord* record) {
    const absl::StatusOr<Residency> residency =
        MeasureResidency(guarded_.roots, {.seed = RandomSeed(), .budget = kLookBudget}, clock_);
    if (!residency.ok()) {
      record->why_unchecked = std::string(residency.status().message());
      record->file_count = 1;  // at least, which is being read
      return;
    }
    record->why_unchecked = residency->untold;
    record->file_count = residency->file_count;
    record->checked_files = residency->checked_files;
    record->checked_bytes = residency->checked_bytes;
    record->resident_pages = residency->pages.resident;
    record->dataset_bytes = residency->EstimatedBytes();
  }

  void LookAtDataset(GateRecord* record) {
    record->dataset_bytes = held_->EstimatedBytes();
    held_->Look(clock_, record);
    if (reads_.has_value()) reads_->Take();
    record->is_exact = reads_.has_value() && !reads_->has_lost();
    record->why_inexact = why_inexact_;
    if (record->is_exact) {
      record->device_bytes = reads_->bytes() - armed_exact_bytes_;
      return;
    }
    if (reads_.has_value()) record->why_inexact = "the kernel has dropped notes of requests";
    const std::optional<int64_t> now = held_->DeviceBytes();
    record->device_bytes =
        now.has_value() && armed_device_bytes_.has_value() ? *now - *armed_device_bytes_ : -1;
  }

  const RealClock clock_;
  const pid_t run_;
  const int socket_;
  const Guarded guarded_;
  std::optional<HeldFiles> held_;
  std::optional<DeviceReads> reads_;
  std::string why_inexact_;
  Barrier barrier_;
  int64_t armed_exact_bytes_ = 0;
  std::optional<int64_t> armed_device_bytes_;
  int64_t others_count_ = 0;
  bool is_over_ = false;
};

}  // namespace

int RunGate(const std::vector<std::string>& arguments) {
  constexpr int kUsage = 2;
  pid_t run = 0;
  if (arguments.size() < 4 || !absl::SimpleAtoi(arguments[0], &run)) return kUsage;
  // Nobody may wait for a gate that nobody watches.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != run) return EXIT_FAILURE;
  RaiseDescriptorLimit(kHeldFilesMax + kOtherDescriptors);
  Gate gate(run, kInheritedFd,
            {.are_copies = arguments[2] == kGateOfCopies,
             .roots = {arguments.begin() + 3, arguments.end()}});
  const absl::Status closed = gate.Close(arguments[1]);
  if (!closed.ok()) {
    gate.Send(absl::StrCat(kGateRefused, closed.message()));
    return EXIT_FAILURE;
  }
  gate.Send(kGateClosed);
  gate.Watch();
  return EXIT_SUCCESS;
}

}  // namespace assay::agent
