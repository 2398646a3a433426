#include "worker/agent/sandbox.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/file.h"
#include "common/status.h"
#include "worker/agent/hold.h"
#include "worker/agent/image_root.h"

namespace assay::agent {
namespace {

constexpr char kHoldInside[] = "/.assay-hold";
constexpr absl::Duration kPatience = absl::Seconds(30);

// What every program may need of a system, and nobody's own.
constexpr const char* kSystem[] = {"/bin",
                                   "/etc",
                                   "/lib",
                                   "/lib32",
                                   "/lib64",
                                   "/libx32",
                                   "/opt",
                                   "/sbin",
                                   "/sys",
                                   "/usr",
                                   "/run/systemd/resolve"};
constexpr const char* kDevices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                    "/dev/random", "/dev/urandom", "/dev/tty"};
// What an image cannot know.
constexpr const char* kNodesOwn[] = {"/sys", "/etc/hosts", "/etc/resolv.conf"};
constexpr const char* kLibraryFolders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64",
                                           "/usr/lib/aarch64-linux-gnu"};
// By the beginning of their names: accelerators and fabrics.
constexpr const char* kDevicePrefixes[] = {"nvidia", "infiniband", "dri",    "kfd", "xpmem",
                                           "hfi1",   "cxi",        "gdrdrv", "knem"};

std::vector<std::string> Devices() {
  std::vector<std::string> devices(std::begin(kDevices), std::end(kDevices));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error))
    for (const char* const prefix : kDevicePrefixes)
      if (entry.path().filename().string().starts_with(prefix))
        devices.push_back(entry.path().string());
  return devices;
}

absl::StatusOr<std::string> HoldProgram(std::string path) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (path.empty()) path = (self.parent_path() / "assay-hold").string();
  if (access(path.c_str(), X_OK) == 0) return path;
  return absl::FailedPreconditionError(
      absl::StrCat(path, " is missing: install it beside assay-worker"));
}

// Binds the image, and what of the node it cannot know.
std::vector<std::string> ImageWords(const SandboxOptions& options) {
  const std::map<std::string, std::string> driver =
      DriverLibraries({std::begin(kLibraryFolders), std::end(kLibraryFolders)});
  std::set<std::string> mounted = {"/proc", "/dev", "/tmp", "/var/tmp", kHoldInside};
  mounted.insert(std::begin(kNodesOwn), std::end(kNodesOwn));
  mounted.insert(options.readable.begin(), options.readable.end());
  mounted.insert(options.writable.begin(), options.writable.end());
  for (const auto& [inside, outside] : driver)
    mounted.insert(inside);
  std::vector<std::string> words = ImageArguments(options.root, mounted);
  for (const char* const path : kNodesOwn)
    words.insert(words.end(), {"--ro-bind-try", path, path});
  for (const auto& [inside, outside] : driver)
    words.insert(words.end(), {"--ro-bind", outside, inside});
  return words;
}

std::vector<std::string> Arguments(const SandboxOptions& options, const std::string& hold) {
  std::vector<std::string> words = {kBubblewrap,        "--unshare-user",       "--unshare-pid",
                                    "--unshare-ipc",    "--unshare-cgroup-try", "--as-pid-1",
                                    "--die-with-parent"};
  const auto add = [&words](std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
  };
  const auto bind = [&add](const char* how, const std::string& path) { add({how, path, path}); };
  add({"--tmpfs", "/"});
  if (options.root.empty()) {
    for (const char* const path : kSystem)
      bind("--ro-bind-try", path);
  } else {
    const std::vector<std::string> image = ImageWords(options);
    words.insert(words.end(), image.begin(), image.end());
  }
  add({"--proc", "/proc", "--tmpfs", "/dev", "--tmpfs", "/dev/shm"});
  for (const std::string& device : Devices())
    bind("--dev-bind-try", device);
  add({"--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "/proc/self/fd/0", "/dev/stdin",
       "--symlink", "/proc/self/fd/1", "/dev/stdout", "--symlink", "/proc/self/fd/2",
       "/dev/stderr"});
  add({"--bind", options.temporary_directory, "/tmp", "--tmpfs", "/var/tmp"});
  if (options.root.empty()) {
    for (const std::string& path : options.software)
      bind("--ro-bind", path);
    for (const std::string& path : options.hidden)
      add({"--tmpfs", path});
  }
  for (const std::string& path : options.readable)
    bind("--ro-bind", path);
  for (const std::string& path : options.writable)
    bind("--bind", path);
  add({"--ro-bind", hold, kHoldInside, "--chdir", "/", "--", kHoldInside});
  return words;
}

// Whether the sandbox stands: false if its maker has ended or is too slow.
bool IsReady(int fd) {
  pollfd entry{fd, POLLIN, 0};
  char byte = 0;
  return poll(&entry, 1, static_cast<int>(absl::ToInt64Milliseconds(kPatience))) == 1 &&
         read(fd, &byte, 1) == 1 && byte == kHoldIsReady;
}

absl::Status CannotEnter(const char* what) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot enter the sandbox: ", what));
}

absl::Status Join(pid_t first_process) {
  // In this order: what comes after the first is allowed only to whoever is in it.
  constexpr std::pair<const char*, int> kNamespaces[] = {
      {"user", CLONE_NEWUSER}, {"ipc", CLONE_NEWIPC}, {"pid", CLONE_NEWPID}, {"mnt", CLONE_NEWNS}};
  std::array<UniqueFd, std::size(kNamespaces)> fds;
  for (size_t i = 0; i < fds.size(); ++i) {
    const std::string path = absl::StrCat("/proc/", first_process, "/ns/", kNamespaces[i].first);
    fds[i] = UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fds[i].is_open()) return CannotEnter(path.c_str());
  }
  for (size_t i = 0; i < fds.size(); ++i)
    if (setns(fds[i].get(), kNamespaces[i].second) != 0) return CannotEnter(kNamespaces[i].first);
  return absl::OkStatus();
}

absl::Status GiveUpCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  return syscall(SYS_capset, &header, none.data()) == 0 ? absl::OkStatus() : CannotEnter("capset");
}

}  // namespace

absl::StatusOr<Sandbox> Sandbox::Open(const SandboxOptions& options) {
  if (access(kBubblewrap, X_OK) != 0)
    return absl::FailedPreconditionError(
        absl::StrCat(kBubblewrap, " is missing: install the package bubblewrap"));
  ASSIGN_OR_RETURN(const std::string hold, HoldProgram(options.hold_program));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  ASSIGN_OR_RETURN(
      const ProcessId maker,
      Spawn({.argv = AsRank(options.user, Arguments(options, hold)),
             // Nothing of the agent's: what a process was given may be read by its like.
             .environment = AsWholeEnvironment({"PATH=/usr/bin:/bin"}),
             .output_path = options.log_path,
             .inherited_fd = writing.get()}));
  writing.Reset();
  const std::vector<pid_t> inside =
      IsReady(reading.get()) ? DescendantsOf(maker.pid) : std::vector<pid_t>{};
  if (inside.size() == 1) return Sandbox(inside.front());
  RETURN_IF_ERROR(StopGroup(maker, absl::ZeroDuration()).status());
  const std::string said = ReadFile(options.log_path).value_or("");
  return absl::FailedPreconditionError(absl::StrCat("no namespaces for programs can be made here: ",
                                                    absl::StripAsciiWhitespace(said)));
}

absl::Status EnterSandbox(pid_t first_process) {
  std::error_code error;
  const std::string directory = std::filesystem::current_path(error).string();
  if (error) return absl::ErrnoToStatus(error.value(), "cannot tell the directory");
  const bool is_leader = getpgrp() == getpid();
  RETURN_IF_ERROR(Join(first_process));
  // Only children are in the joined process namespace; this one is of our parent, who waits for it
  // as for any other of its own.
  clone_args arguments{};
  arguments.flags = CLONE_PARENT;
  const pid_t child = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof(arguments)));
  if (child < 0) return CannotEnter("clone");
  if (child > 0) {
    const std::string number = absl::StrCat(child);
    _exit(WriteAll(kHoldFd, number).ok() ? 0 : 1);
  }
  close(kHoldFd);
  if (is_leader && setpgid(0, 0) != 0) return CannotEnter("setpgid");
  RETURN_IF_ERROR(GiveUpCapabilities());
  if (chdir(directory.c_str()) != 0) return CannotEnter(directory.c_str());
  return absl::OkStatus();
}

}  // namespace assay::agent
