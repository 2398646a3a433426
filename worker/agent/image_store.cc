#include "worker/agent/image_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/log.h"
#include "common/process.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/agent/sandbox.h"

namespace assay::agent {
namespace {

namespace fs = std::filesystem;

constexpr size_t kImagesMax = 4;  // kept, the one at work included
constexpr absl::Duration kLook = absl::Milliseconds(100);
constexpr char kUnpackedInside[] = "/unpacked";
constexpr mode_t kPassable = 0755;

std::string SeenPath(const std::string& folder) {
  return JoinPath(folder, "seen");
}

constexpr char kBubblewrapSays[] = "bwrap: ";

// Opens what `user` may read: with his rights, not with those of an agent that is root, so that
// nobody learns of a file by naming it. Groups of his do not count.
absl::StatusOr<UniqueFd> OpenAs(const std::optional<Account>& user, const std::string& path) {
  if (!user.has_value()) return OpenRegularFile(path);
  const int uid = setfsuid(user->uid);
  const int gid = setfsgid(user->gid);
  absl::StatusOr<UniqueFd> file = OpenRegularFile(path);
  setfsgid(static_cast<gid_t>(gid));
  setfsuid(static_cast<uid_t>(uid));
  return file;
}

// What is another after any change of the file's content.
absl::StatusOr<std::string> IdentityOf(const UniqueFd& file) {
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return absl::ErrnoToStatus(errno, "cannot stat an image");
  const auto nanoseconds = [](const timespec& time) {
    return absl::ToUnixNanos(absl::TimeFromTimespec(time));
  };
  return absl::StrCat(info.st_dev, " ", info.st_ino, " ", info.st_size, " ",
                      nanoseconds(info.st_mtim), " ", nanoseconds(info.st_ctim));
}

absl::StatusOr<std::string> DigestOf(const UniqueFd& file,
                                     const std::function<bool()>& is_stopped) {
  Sha256 digest;
  std::vector<char> buffer(size_t{1} << 20);
  for (;;) {
    if (is_stopped()) return absl::CancelledError("stopped while an image was verified");
    const ssize_t n = read(file.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, "cannot read an image");
    if (n == 0) return digest.HexDigest();
    digest.Add(absl::string_view(buffer.data(), static_cast<size_t>(n)));
  }
}

// The command that unpacks it from kInheritedFd. Devices are the node's, not the image's.
absl::StatusOr<std::vector<std::string>> UnpackingCommand(const UniqueFd& file) {
  std::array<char, 512> head{};
  const ssize_t n = pread(file.get(), head.data(), head.size(), 0);
  if (n < 0) return absl::ErrnoToStatus(errno, "cannot read it");
  const absl::string_view bytes(head.data(), static_cast<size_t>(n));
  const std::string input = absl::StrCat("/proc/self/fd/", kInheritedFd);
  const std::string root = absl::StrCat(kUnpackedInside, "/root");
  if (absl::StartsWith(bytes, "hsqs"))
    return std::vector<std::string>{"unsquashfs", "-no-progress", "-no-xattrs", "-strict-errors",
                                    "-quiet",     "-excludes",    "-dest",      root,
                                    input,        "dev"};
  if (bytes.size() > 40 && absl::StartsWith(bytes.substr(32), "SIF_MAGIC"))
    return absl::InvalidArgumentError(
        "is of Apptainer's own format: make a squashfs file of it, with `apptainer build --sandbox "
        "DIR IMAGE` and `mksquashfs DIR IMAGE.sqsh`");
  constexpr absl::string_view kCompressed[] = {"\x1f\x8b", "\xfd\x37zXZ", "\x28\xb5\x2f\xfd",
                                               "BZh"};
  const bool is_tar =
      (bytes.size() > 262 && bytes.substr(257, 5) == "ustar") ||
      std::any_of(std::begin(kCompressed), std::end(kCompressed),
                  [&](absl::string_view magic) { return absl::StartsWith(bytes, magic); });
  if (is_tar)
    return std::vector<std::string>{"tar",
                                    "--extract",
                                    "--file",
                                    input,
                                    "--directory",
                                    root,
                                    "--exclude=dev",
                                    "--exclude=./dev",
                                    "--anchored",
                                    "--no-same-owner",
                                    "--same-permissions"};
  return absl::InvalidArgumentError("is neither a squashfs nor a tar file");
}

// Nobody has written these programs to read what strangers made, so they see nothing of the node
// but the system's programs, and write nothing but the folder.
std::vector<std::string> Confined(const std::string& folder,
                                  const std::vector<std::string>& command) {
  std::vector<std::string> words = {kBubblewrap, "--unshare-all", "--die-with-parent",
                                    "--new-session",
                                    // Not root, who would give files to those that the image names.
                                    "--uid", "65534", "--gid", "65534"};
  for (const char* const path : {"/usr", "/bin", "/lib", "/lib32", "/lib64", "/libx32"})
    words.insert(words.end(), {"--ro-bind-try", path, path});
  words.insert(words.end(), {"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind",
                             folder, kUnpackedInside, "--chdir", "/", "--"});
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

// Nothing in it lends its owner's rights, and all of it can be read through and removed by us.
absl::Status MakeHarmless(const std::string& root) {
  std::error_code error;
  fs::permissions(root, static_cast<fs::perms>(kPassable), error);
  fs::recursive_directory_iterator entries(root, error);
  for (const fs::recursive_directory_iterator end; !error && entries != end;
       entries.increment(error)) {
    const fs::file_status status = entries->symlink_status(error);
    if (error || fs::is_symlink(status)) continue;
    fs::perms wanted = status.permissions() & ~(fs::perms::set_uid | fs::perms::set_gid);
    if (fs::is_directory(status)) wanted |= fs::perms::owner_all;
    if (wanted != status.permissions()) fs::permissions(entries->path(), wanted, error);
  }
  return error ? absl::ErrnoToStatus(error.value(), absl::StrCat("cannot walk through ", root))
               : absl::OkStatus();
}

// What an unpacked root file system has, and an archive of its layers has not.
absl::Status CheckRoot(const std::string& root) {
  if (fs::is_directory(JoinPath(root, "usr")) || fs::is_directory(JoinPath(root, "bin")))
    return absl::OkStatus();
  if (FileExists(JoinPath(root, "index.json")) || FileExists(JoinPath(root, "manifest.json")))
    return absl::InvalidArgumentError(
        "holds the layers of an image, not its files: write these with `podman export CONTAINER` "
        "or `docker export CONTAINER`");
  return absl::InvalidArgumentError("has neither /usr nor /bin: it is no root file system");
}

std::string LastLineOf(const std::string& path) {
  const std::string text = ReadFile(path).value_or("");
  const absl::string_view lines = absl::StripAsciiWhitespace(text);
  return std::string(lines.substr(lines.rfind('\n') + 1));
}

// `said`: the last that was said. What bubblewrap itself says is of the node, not of the image.
absl::Status UnpackingError(const std::string& said) {
  if (!absl::StartsWith(said, kBubblewrapSays))
    return absl::ResourceExhaustedError(absl::StrCat("cannot be unpacked: ", said));
  return absl::FailedPreconditionError(absl::StrCat(
      "cannot be unpacked on this node: ", said,
      ": install the packages squashfs-tools and tar, and let the agent make namespaces (a systemd "
      "unit: assay-worker-namespaces.conf of docs/operator.md)"));
}

absl::Status AwaitUnpacking(const ProcessId& child, const std::string& said_path,
                            const std::function<bool()>& is_stopped) {
  for (;;) {
    const absl::StatusOr<int> code = WaitForExit(child, kLook);
    if (code.ok() && *code == 0) return absl::OkStatus();
    if (code.ok()) return UnpackingError(LastLineOf(said_path));
    if (!absl::IsDeadlineExceeded(code.status())) return code.status();
    if (!is_stopped()) continue;
    RETURN_IF_ERROR(StopGroup(child, absl::ZeroDuration()).status());
    return absl::CancelledError("stopped while an image was unpacked");
  }
}

// A power failure leaves either all of it or no word that it is there.
absl::Status SyncFileSystemOf(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open() || syncfs(fd.get()) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot sync ", path));
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> Lock(const std::string& path, int how) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kPrivateFile));
  if (fd.is_open() && flock(fd.get(), how) == 0) return fd;
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", path));
}

}  // namespace

std::string ImageStore::Folder(const std::string& sha256) const {
  return JoinPath(directory_, sha256);
}

absl::Status ImageStore::Unpack(const UniqueFd& file, const v1::ImageFile& image,
                                const std::function<bool()>& is_stopped) {
  ASSIGN_OR_RETURN(const std::vector<std::string> command, UnpackingCommand(file));
  if (access(kBubblewrap, X_OK) != 0)
    return absl::FailedPreconditionError(
        absl::StrCat("needs ", kBubblewrap, ": install the package bubblewrap"));
  const std::string folder = absl::StrCat(Folder(image.sha256()), ".new");
  const std::string root = JoinPath(folder, "root");
  const std::string said_path = absl::StrCat(Folder(image.sha256()), ".log");
  if (FileExists(root)) RETURN_IF_ERROR(MakeHarmless(root));
  RETURN_IF_ERROR(RemoveTree(folder));
  RETURN_IF_ERROR(RemoveTree(said_path));
  RETURN_IF_ERROR(MakeDirectories(folder, kPrivateDirectory));
  if (command.front() == "tar") RETURN_IF_ERROR(MakeDirectories(root, kPrivateDirectory));
  ASSIGN_OR_RETURN(const ProcessId child, Spawn({.argv = Confined(folder, command),
                                                 .output_path = said_path,
                                                 .inherited_fd = file.get()}));
  absl::Status status = AwaitUnpacking(child, said_path, is_stopped);
  if (FileExists(root)) status.Update(MakeHarmless(root));
  if (status.ok()) status = CheckRoot(root);
  if (!status.ok()) {
    const absl::Status removed = RemoveTree(folder);
    if (!removed.ok()) LOG(WARNING) << removed;
    return status;
  }
  RETURN_IF_ERROR(RemoveTree(said_path));
  RETURN_IF_ERROR(GrantPassage(folder, user_));
  RETURN_IF_ERROR(SyncFileSystemOf(folder));
  return RenameSynced(folder, Folder(image.sha256()));
}

absl::Status ImageStore::MakeRoom(const std::string& sha256) const {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory_));
  std::vector<std::pair<fs::file_time_type, std::string>> others;
  for (const std::string& name : names) {
    std::error_code error;
    const std::string folder = JoinPath(directory_, name);
    const fs::file_time_type used = fs::last_write_time(SeenPath(folder), error);
    if (name != sha256 && fs::is_directory(folder)) others.emplace_back(used, name);
  }
  std::sort(others.begin(), others.end());
  for (size_t i = 0; i + kImagesMax <= others.size(); ++i) {
    const std::string folder = Folder(others[i].second);
    if (!Lock(absl::StrCat(folder, ".lock"), LOCK_EX | LOCK_NB).ok()) continue;  // at work
    for (const std::string& path : {folder, absl::StrCat(folder, ".lock")})
      if (const absl::Status removed = RemoveTree(path); !removed.ok()) LOG(WARNING) << removed;
  }
  return absl::OkStatus();
}

absl::StatusOr<UnpackedImage> ImageStore::Open(const v1::ImageFile& image,
                                               const std::function<bool()>& is_stopped) {
  const auto told = [&image](const absl::Status& status) {
    return Annotate(status, absl::StrCat("the image ", image.path()));
  };
  RETURN_IF_ERROR(MakeDirectories(directory_, kPrivateDirectory));
  RETURN_IF_ERROR(GrantPassage(directory_, user_));
  ASSIGN_OR_RETURN(const UniqueFd lock, Lock(JoinPath(directory_, "lock"), LOCK_EX));
  absl::StatusOr<UniqueFd> opened = OpenAs(user_, image.path());
  if (!opened.ok())
    return Annotate(opened.status(),
                    absl::StrCat("the image has to be on every node, for ",
                                 user_.has_value() ? user_->name : "the agent", " to read"));
  const UniqueFd file = *std::move(opened);
  ASSIGN_OR_RETURN(const std::string identity, IdentityOf(file));
  const std::string folder = Folder(image.sha256());
  const std::string seen = SeenPath(folder);
  if (ReadFile(seen).value_or("") != identity) {
    ASSIGN_OR_RETURN(const std::string sha256, DigestOf(file, is_stopped));
    if (sha256 != image.sha256())
      return absl::DataLossError(absl::StrCat(
          "the image ", image.path(),
          " has changed: it has not the digest that was submitted with it, sha256:", image.sha256(),
          "; put it back, or submit again"));
  }
  if (!FileExists(folder)) {
    LOG(INFO) << "unpacking image " << image.path() << " sha256:" << image.sha256();
    RETURN_IF_ERROR(told(Unpack(file, image, is_stopped)));
  }
  ASSIGN_OR_RETURN(const std::string identity_after, IdentityOf(file));
  if (identity != identity_after) {
    RETURN_IF_ERROR(RemoveTree(folder));
    return told(absl::DataLossError("changed while it was read"));
  }
  RETURN_IF_ERROR(WriteFileAtomic(seen, identity, kPrivateFile));
  RETURN_IF_ERROR(MakeRoom(image.sha256()));
  ASSIGN_OR_RETURN(UniqueFd lease, Lock(absl::StrCat(folder, ".lock"), LOCK_SH));
  return UnpackedImage{.root = JoinPath(folder, "root"), .lease = std::move(lease)};
}

}  // namespace assay::agent
