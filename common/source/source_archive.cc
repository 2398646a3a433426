#include "common/source/source_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "common/file.h"
#include "common/status.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kFolderMode = 0755;
constexpr mode_t kFileMode = 0644;
constexpr mode_t kProgramMode = 0755;
constexpr mode_t kReadOnly = 0444;
constexpr mode_t kExecutable = 0111;
constexpr size_t kPieceBytes = 64 << 10;

using Writer = std::unique_ptr<archive, int (*)(archive*)>;
using Reader = std::unique_ptr<archive, int (*)(archive*)>;
using Entry = std::unique_ptr<archive_entry, void (*)(archive_entry*)>;

absl::Status TooLarge(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is more than a source may be: at most ", kSourceBytesMax >> 20,
                   " MiB in ", kSourceFilesMax, " files; leave data and builds out of the folder"));
}

absl::Status Failed(archive* from, absl::string_view what) {
  const char* const why = archive_error_string(from);
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", why == nullptr ? "damaged" : why));
}

struct SourceFile {
  std::string path;  // below the folder
  bool is_folder = false;
};

bool IsLeftOut(const fs::path& name) {
  return name == ".git" || name == "__pycache__";
}

// Everything below the folder, sorted bytewise.
absl::StatusOr<std::vector<SourceFile>> ListSource(const std::string& folder) {
  std::vector<SourceFile> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  const fs::recursive_directory_iterator end;
  for (; !error && entry != end; entry.increment(error)) {
    if (IsLeftOut(entry->path().filename())) {
      entry.disable_recursion_pending();
      continue;
    }
    const std::string path = entry->path().lexically_relative(folder).string();
    const fs::file_status status = entry->symlink_status(error);
    if (!fs::is_regular_file(status) && !fs::is_directory(status))
      return absl::InvalidArgumentError(absl::StrCat(
          entry->path().string(), fs::is_symlink(status) ? " is a symbolic link" : " is no file",
          ": a source has files and folders only; put a copy in its place"));
    files.push_back({path, fs::is_directory(status)});
    if (files.size() > kSourceFilesMax) return TooLarge(folder);
  }
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot read ", folder));
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

la_ssize_t Append(archive*, void* bytes, const void* data, size_t size) {
  static_cast<std::string*>(bytes)->append(static_cast<const char*>(data), size);
  return static_cast<la_ssize_t>(size);
}

absl::Status AddFile(const std::string& folder, const SourceFile& file, archive* to) {
  const std::string path = JoinPath(folder, file.path);
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  std::string content;
  if (!file.is_folder) {
    if (status.st_size > kSourceBytesMax) return TooLarge(path);
    ASSIGN_OR_RETURN(content, ReadFile(path, kSourceBytesMax));
  }
  const Entry entry(archive_entry_new(), archive_entry_free);
  archive_entry_set_pathname(entry.get(), file.path.c_str());
  archive_entry_set_filetype(entry.get(), file.is_folder ? AE_IFDIR : AE_IFREG);
  archive_entry_set_perm(entry.get(), file.is_folder                    ? kFolderMode
                                      : (status.st_mode & S_IXUSR) != 0 ? kProgramMode
                                                                        : kFileMode);
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(content.size()));
  archive_entry_set_mtime(entry.get(), 0, 0);
  if (archive_write_header(to, entry.get()) != ARCHIVE_OK) return Failed(to, path);
  if (archive_write_data(to, content.data(), content.size()) !=
      static_cast<la_ssize_t>(content.size()))
    return Failed(to, path);
  return absl::OkStatus();
}

// A path that stays below the folder into which it is unpacked.
bool IsInside(absl::string_view path) {
  for (const absl::string_view part : absl::StrSplit(path, '/'))
    if (part.empty() || part == "." || part == "..") return false;
  return true;
}

// umask(2) makes what we create private; this is for the program's account to read.
absl::Status MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), kFolderMode) != 0 && errno != EEXIST)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", path));
  if (chmod(path.c_str(), kFolderMode) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot set the permission of ", path));
  return absl::OkStatus();
}

absl::Status UnpackFile(archive* from, const std::string& path, mode_t mode, int64_t* bytes_left) {
  const UniqueFd fd(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kPrivateFile));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", path));
  std::string piece(kPieceBytes, '\0');
  for (;;) {
    const la_ssize_t size = archive_read_data(from, piece.data(), piece.size());
    if (size < 0) return Failed(from, path);
    if (size == 0) break;
    *bytes_left -= size;
    if (*bytes_left < 0) return TooLarge(path);
    RETURN_IF_ERROR(
        WriteAll(fd.get(), absl::string_view(piece).substr(0, static_cast<size_t>(size))));
  }
  if (fchmod(fd.get(), kReadOnly | (mode & kExecutable)) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot set the permission of ", path));
  return absl::OkStatus();
}

absl::Status UnpackEntry(archive* from, archive_entry* entry, const std::string& folder,
                         int64_t* bytes_left) {
  const char* const name = archive_entry_pathname(entry);
  absl::string_view path = name == nullptr ? "" : name;
  while (absl::EndsWith(path, "/"))
    path.remove_suffix(1);
  const auto type = archive_entry_filetype(entry);
  const bool is_plain = archive_entry_hardlink(entry) == nullptr &&
                        archive_entry_symlink(entry) == nullptr &&
                        (type == AE_IFREG || type == AE_IFDIR);
  if (!IsInside(path) || !is_plain)
    return absl::InvalidArgumentError(
        absl::StrCat("the source has \"", path, "\", which is no file or folder below it"));
  const std::string target = JoinPath(folder, path);
  if (type == AE_IFDIR) return MakeFolder(target);
  return UnpackFile(from, target, archive_entry_perm(entry), bytes_left);
}

}  // namespace

absl::StatusOr<std::string> PackSource(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<SourceFile> files, ListSource(folder));
  const bool has_file =
      std::any_of(files.begin(), files.end(), [](const SourceFile& f) { return !f.is_folder; });
  if (!has_file) return absl::InvalidArgumentError(absl::StrCat(folder, " has no file in it"));
  std::string bytes;
  const Writer writer(archive_write_new(), archive_write_free);
  archive_write_set_format_pax_restricted(writer.get());
  if (archive_write_open(writer.get(), &bytes, nullptr, Append, nullptr) != ARCHIVE_OK)
    return Failed(writer.get(), folder);
  for (const SourceFile& file : files) {
    RETURN_IF_ERROR(AddFile(folder, file, writer.get()));
    if (static_cast<int64_t>(bytes.size()) > kSourceBytesMax) return TooLarge(folder);
  }
  if (archive_write_close(writer.get()) != ARCHIVE_OK) return Failed(writer.get(), folder);
  if (static_cast<int64_t>(bytes.size()) > kSourceBytesMax) return TooLarge(folder);
  return bytes;
}

absl::Status UnpackSource(const std::string& archive_path, const std::string& folder) {
  const Reader reader(archive_read_new(), archive_read_free);
  archive_read_support_format_tar(reader.get());
  if (archive_read_open_filename(reader.get(), archive_path.c_str(), kPieceBytes) != ARCHIVE_OK)
    return Failed(reader.get(), archive_path);
  if (mkdir(folder.c_str(), kFolderMode) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", folder));
  RETURN_IF_ERROR(MakeFolder(folder));
  int64_t bytes_left = kSourceBytesMax;
  for (size_t count = 0;; ++count) {
    archive_entry* entry = nullptr;
    const int next = archive_read_next_header(reader.get(), &entry);
    if (next == ARCHIVE_EOF) return absl::OkStatus();
    if (next != ARCHIVE_OK) return Failed(reader.get(), archive_path);
    if (count >= kSourceFilesMax) return TooLarge(archive_path);
    RETURN_IF_ERROR(UnpackEntry(reader.get(), entry, folder, &bytes_left));
  }
}

}  // namespace assay
