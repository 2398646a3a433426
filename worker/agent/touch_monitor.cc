#include "worker/agent/touch_monitor.h"

#include <fcntl.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"
#include "worker/agent/cold_start.h"
#include "worker/agent/file_system.h"
#include "worker/agent/other_runs.h"
#include "worker/agent/witness_holes.h"
#include "worker/privileged/fanotify_group.h"
#include "worker/privileged/helper.h"

namespace assay::agent {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr int64_t kNsPerUs = 1000;

// Where a symbolic link points to; empty if it cannot be read.
std::string TargetOf(const std::string& link) {
  std::array<char, 4096> buffer{};
  const ssize_t n = readlink(link.c_str(), buffer.data(), buffer.size());
  return n > 0 ? std::string(buffer.data(), static_cast<size_t>(n)) : std::string();
}

std::string ProcessName(pid_t pid) {
  const absl::StatusOr<std::string> name = ReadFile(absl::StrCat("/proc/", pid, "/comm"));
  return name.ok() ? std::string(absl::StripAsciiWhitespace(*name)) : std::string();
}

}  // namespace

absl::StatusOr<TouchMonitor> TouchMonitor::Arm(const TouchMonitorOptions& options,
                                               const Clock* clock) {
  const MonoTime began_at = clock->Mono();
  std::string why_folders;
  ASSIGN_OR_RETURN(TouchMonitor monitor, ArmBest(options, clock, &why_folders));
  const absl::StatusOr<FileSystem> file_system = options.directories.empty()
                                                     ? absl::NotFoundError("no directory")
                                                     : FileSystemOf(options.directories.front());
  utsname kernel{};
  uname(&kernel);
  monitor.empty_at_ = began_at;
  monitor.is_read_only_ = options.is_read_only;
  if (!options.is_read_only)
    monitor.early_reads_.emplace(
        EarlyReads::Options{.roots = options.directories, .dataset_bytes = options.dataset_bytes});
  if (!monitor.files_.has_value() && !options.is_read_only) {  // copies are yet to come
    absl::StatusOr<AccessTimes> times =
        AccessTimes::Take(options.directories, RandomSeed(), *clock);
    if (times.ok()) monitor.access_times_ = *std::move(times);
  }
  monitor.holes_ = HolesOf({.names_processes = monitor.is_fanotify_,
                            .why_folders = std::move(why_folders),
                            .file_system = file_system.value_or(FileSystem()),
                            .kernel = std::string(kernel.release)});
  return monitor;
}

// By what sees most of what this process may use. `why_folders`: why it does not see all names.
absl::StatusOr<TouchMonitor> TouchMonitor::ArmBest(const TouchMonitorOptions& options,
                                                   const Clock* clock, std::string* why_folders) {
  ASSIGN_OR_RETURN(const std::vector<std::string> directories,
                   privileged::WithChildren(options.directories));
  if (options.is_fanotify_allowed) {
    absl::StatusOr<FileSystemWatch> files =
        FileSystemWatch::Open(directories, options.is_read_only, *clock);
    if (files.ok()) {
      // Identifying files has loaded their inodes, which the run is to read from storage.
      if (files->file_count() > 0 && !options.drop_caches_path.empty())
        privileged::DropCaches(options.drop_caches_path, privileged::kInodes).IgnoreError();
      *why_folders = files->incomplete();
      if (options.is_read_only) *why_folders = "copies that come later are known by their folders";
      TouchMonitor monitor(files->TakeFd(), /*is_fanotify=*/true, clock);
      monitor.files_ = *std::move(files);
      return monitor;
    }
    LOG(INFO) << "no fanotify on file systems, trying folders: " << files.status();
    *why_folders = absl::StrCat("folders are watched, because whole file systems cannot be (",
                                files.status().message(), ")");
    absl::StatusOr<UniqueFd> fd = privileged::OpenFanotify(
        directories, options.is_read_only, [](const std::string&) { return absl::OkStatus(); });
    if (!fd.ok() && !options.helper_socket.empty()) {
      LOG(INFO) << "no fanotify of its own, asking the helper: " << fd.status();
      fd = privileged::AskToWatch(options.helper_socket, options.directories, options.is_read_only);
    }
    if (fd.ok()) return TouchMonitor(*std::move(fd), /*is_fanotify=*/true, clock);
    LOG(INFO) << "no fanotify, trying inotify: " << fd.status();
  }
  *why_folders = "inotify watches folders";
  return ArmInotify(directories, clock);
}

absl::StatusOr<TouchMonitor> TouchMonitor::ArmInotify(const std::vector<std::string>& directories,
                                                      const Clock* clock) {
  UniqueFd fd(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!fd.is_open()) return privileged::WatchError("(inotify_init1)");
  TouchMonitor monitor(std::move(fd), /*is_fanotify=*/false, clock);
  for (const std::string& path : directories) {
    const int watch = inotify_add_watch(monitor.fd(), path.c_str(), IN_ACCESS);
    if (watch < 0) return privileged::WatchError(path);
    monitor.directories_[watch] = path;
  }
  return monitor;
}

absl::Status TouchMonitor::Look() {
  std::string buffer(kReadBytes, '\0');
  while (fd_.is_open()) {
    const MonoTime asked_at = clock_->Mono();
    const ssize_t n = read(fd_.get(), buffer.data(), buffer.size());
    const Stamp stamp = StampNow(*clock_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      empty_at_ = asked_at;
      return absl::OkStatus();
    }
    if (n < 0) return absl::ErrnoToStatus(errno, "cannot read dataset events");
    const absl::string_view bytes(buffer.data(), static_cast<size_t>(n));
    is_fanotify_ ? TakeFanotify(bytes, stamp) : TakeInotify(bytes, stamp);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Touch>> TouchMonitor::Poll() {
  RETURN_IF_ERROR(Look());
  if (waiting_.empty()) return std::optional<Touch>();
  Touch touch = std::move(waiting_.front());
  waiting_.erase(waiting_.begin());
  return touch;
}

// Keeps the first of each strength. Nothing follows an attributed touch, nor one of a mechanism
// that attributes none: that takes all watches away.
void TouchMonitor::Take(Touch touch) {
  if (!fd_.is_open() || (has_observed_ && !touch.is_attributed)) return;
  touch.watched = std::string(watched());
  touch.error_us = (touch.stamp.mono_ns - empty_at_.ns) / kNsPerUs + 1;
  Complete(&touch);
  has_observed_ = true;
  if (touch.is_attributed || !is_fanotify_) fd_.Reset();
  waiting_.push_back(std::move(touch));
}

// What is let in by the gate was held by it before, so its word is there already.
void TouchMonitor::Complete(Touch* touch) {
  if (touch->is_attributed && gate_.has_value()) gate_->Await();
  if (touch->is_attributed && gate_.has_value() && gate_->record().has_value()) {
    const GateRecord& record = *gate_->record();
    touch->holes = HolesOf(record);
    if (touch->pid != record.pid) touch->path = record.path;  // else by the dataset's name
    touch->access = record.access;
    touch->pid = record.pid;
    touch->process = record.process;
    touch->stamp = record.stamp;
    touch->gate = record;
    touch->error_us = record.held_us;  // stamped before it was let in
    const bool has_company = has_observed_ || record.others_count > 0;
    touch->read_past = ReadPastGate(record);
    if (has_company || (!touch->read_past.empty() && !OtherSteps(agent_).empty()))
      touch->read_past.clear();
  } else if (gate_.has_value() && !gate_->why_lost().empty()) {
    touch->holes = {GateLost(gate_->why_lost())};
  } else {
    const char* const unheld = touch->is_attributed ? "it came by a way that is not held"
                                                    : "who is not of the run is let in at once";
    touch->holes = {NoGate(is_read_only_, gate_.has_value() ? unheld : why_no_gate_)};
  }
  touch->holes.insert(touch->holes.end(), holes_.begin(), holes_.end());
  if (access_times_.has_value()) {
    const AccessTimes::Count count =
        access_times_->ReadBefore(touch->path, touch->stamp.wall_us, *clock_);
    if (count.read > 0) touch->holes.push_back(ReadBefore(count.read, count.looked_at));
  }
  CountReads(touch);
  if (touch->is_attributed) gate_.reset();
}

// Of the run, which the gate is not.
std::vector<pid_t> TouchMonitor::RunProcesses() const {
  std::vector<pid_t> processes = DescendantsOf(getpid());
  std::erase_if(processes, [this](pid_t pid) { return IsGate(pid); });
  return processes;
}

// Where each request for the dataset's own blocks was told, nothing is left to tell.
void TouchMonitor::CountReads(Touch* touch) {
  if (!early_reads_.has_value()) return;
  touch->run_reads = early_reads_->Now(RunProcesses(), *clock_);
  if (touch->gate.has_value() && touch->gate->is_exact) return;
  std::optional<WitnessHole> hole = early_reads_->HoleOf(*touch->run_reads);
  if (hole.has_value()) touch->holes.push_back(*std::move(hole));
}

void TouchMonitor::SetGate(absl::StatusOr<ReaderGate> gate) {
  if (gate.ok())
    gate_ = *std::move(gate);
  else
    why_no_gate_ = std::string(gate.status().message());
}

void TouchMonitor::LookAtGate() {
  if (gate_.has_value()) gate_->Look();
}

// Said of what is seen from now on.
void TouchMonitor::NoteOverflow() {
  if (std::find(holes_.begin(), holes_.end(), Overflow()) == holes_.end())
    holes_.push_back(Overflow());
}

// Every step leads a session of its own, which its ranks stay in unless they leave it.
bool TouchMonitor::IsOtherRun(pid_t pid) const {
  const pid_t session = getsid(pid);
  return session > 0 && session != getsid(0) && IsStepOfRun(session, agent_);
}

// Who was held lived then, and was of the run.
bool TouchMonitor::WasHeld(pid_t pid) {
  LookAtGate();
  return gate_.has_value() && gate_->record().has_value() && gate_->record()->pid == pid;
}

bool TouchMonitor::IsGate(pid_t pid) const {
  return gate_.has_value() && gate_->pid() == pid;
}

// What the event is about: nullopt if that is none of the dataset's files.
std::optional<std::string> TouchMonitor::PathOf(absl::string_view event, int file) const {
  if (files_.has_value()) return files_->PathOf(event);
  if (file < 0) return std::nullopt;
  return TargetOf(absl::StrCat("/proc/self/fd/", file));
}

// Whoever descends from this process is of the run, whatever programs it starts. A process that has
// ended by now can be anybody's, but for the one that the gate has held. Of a whole file system
// most events are about other files: nothing is looked up for those.
void TouchMonitor::TakeFanotify(absl::string_view bytes, const Stamp& stamp) {
  while (bytes.size() >= sizeof(fanotify_event_metadata)) {
    fanotify_event_metadata event{};
    std::memcpy(&event, bytes.data(), sizeof(event));
    if (event.event_len < sizeof(event) || event.event_len > bytes.size()) return;
    const absl::string_view whole = bytes.substr(0, event.event_len);
    bytes.remove_prefix(event.event_len);
    const UniqueFd file(event.fd);  // of folders every event carries one: each must be closed
    if ((event.mask & FAN_Q_OVERFLOW) != 0) NoteOverflow();
    if (!fd_.is_open() || event.pid == getpid() || IsGate(event.pid)) continue;
    std::optional<std::string> path = PathOf(whole, file.get());
    if (!path.has_value()) continue;
    const bool is_of_run = IsDescendant(event.pid, getpid()) || WasHeld(event.pid);
    if (!is_of_run && (has_observed_ || IsOtherRun(event.pid))) continue;
    Take(Touch{.path = *std::move(path),
               .mechanism = "fanotify",
               .access = (event.mask & FAN_OPEN) != 0 ? "open" : "read",
               .is_attributed = is_of_run,
               .pid = event.pid,
               .process = ProcessName(event.pid),
               .stamp = stamp});
  }
}

void TouchMonitor::TakeInotify(absl::string_view bytes, const Stamp& stamp) {
  while (bytes.size() >= sizeof(inotify_event)) {
    inotify_event event{};
    std::memcpy(&event, bytes.data(), sizeof(event));
    const size_t length = sizeof(event) + event.len;
    if (length > bytes.size()) return;
    const std::string name(bytes.data() + sizeof(event));  // padded with zero bytes
    const bool is_file =
        (event.mask & (IN_ISDIR | IN_IGNORED | IN_Q_OVERFLOW)) == 0 && event.len > 0;
    if ((event.mask & IN_Q_OVERFLOW) != 0) NoteOverflow();
    bytes.remove_prefix(length);
    const auto directory = directories_.find(event.wd);
    if (!is_file || directory == directories_.end()) continue;
    Take(Touch{.path = JoinPath(directory->second, name),
               .mechanism = "inotify",
               .access = "read",
               .stamp = stamp});
  }
}

}  // namespace assay::agent
