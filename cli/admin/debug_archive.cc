#include "cli/admin/debug_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/status.h"

namespace assay::cli {
namespace {

using ArchivePtr = std::unique_ptr<archive, decltype(&archive_write_free)>;
using EntryPtr = std::unique_ptr<archive_entry, decltype(&archive_entry_free)>;

constexpr absl::string_view kTokenPrefix = "assay_";
constexpr size_t kTokenDigits = 32;

// The length of the token with which `text` begins; 0: with none.
size_t TokenAt(absl::string_view text) {
  if (text.size() < kTokenPrefix.size() + kTokenDigits || !absl::StartsWith(text, kTokenPrefix))
    return 0;
  const absl::string_view digits = text.substr(kTokenPrefix.size(), kTokenDigits);
  const bool is_token = std::all_of(digits.begin(), digits.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '2' && c <= '7');
  });
  return is_token ? kTokenPrefix.size() + kTokenDigits : 0;
}

// The same for a private key; one without an end reaches to the end of the text.
size_t KeyAt(absl::string_view text) {
  constexpr absl::string_view kPrivate = "PRIVATE KEY-----";
  if (!absl::StartsWith(text, "-----BEGIN ")) return 0;
  const size_t kind = text.find(kPrivate);
  if (kind == absl::string_view::npos || kind > text.find('\n')) return 0;
  const size_t end = text.find(kPrivate, kind + kPrivate.size());
  return end == absl::string_view::npos ? text.size() : end + kPrivate.size();
}

absl::Status Failed(archive* to, absl::string_view what) {
  const char* const why = archive_error_string(to);
  return absl::InternalError(absl::StrCat(what, ": ", why == nullptr ? "libarchive fails" : why));
}

absl::Status Add(const std::string& name, const std::string& text, absl::Time now, archive* to) {
  const EntryPtr entry(archive_entry_new(), archive_entry_free);
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), kPrivateFile);
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(text.size()));
  archive_entry_set_mtime(entry.get(), absl::ToTimeT(now), 0);
  if (archive_write_header(to, entry.get()) != ARCHIVE_OK) return Failed(to, name);
  if (archive_write_data(to, text.data(), text.size()) != static_cast<la_ssize_t>(text.size()))
    return Failed(to, name);
  return absl::OkStatus();
}

absl::Status WriteTo(int fd, const std::string& folder, const std::vector<BundleFile>& files,
                     absl::Time now) {
  const ArchivePtr to(archive_write_new(), archive_write_free);
  archive_write_set_format_pax_restricted(to.get());
  if (archive_write_add_filter_zstd(to.get()) != ARCHIVE_OK ||
      archive_write_open_fd(to.get(), fd) != ARCHIVE_OK)
    return Failed(to.get(), folder);
  for (const BundleFile& file : files)
    RETURN_IF_ERROR(Add(JoinPath(folder, file.name), WithoutSecrets(file.text), now, to.get()));
  if (archive_write_close(to.get()) != ARCHIVE_OK) return Failed(to.get(), folder);
  if (fsync(fd) != 0) return absl::ErrnoToStatus(errno, "fsync");
  return absl::OkStatus();
}

}  // namespace

std::string WithoutSecrets(absl::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    if (const size_t size = TokenAt(text); size > 0) {
      result += "(token left out)";
      text.remove_prefix(size);
    } else if (const size_t key_size = KeyAt(text); key_size > 0) {
      result += "(key left out)";
      text.remove_prefix(key_size);
    } else {
      result += text.front();
      text.remove_prefix(1);
    }
  }
  return result;
}

absl::Status WriteBundle(const std::string& path, const std::string& folder,
                         const std::vector<BundleFile>& files, absl::Time now) {
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kPrivateFile));
  if (!fd.is_open() && errno == EEXIST)
    return absl::AlreadyExistsError(absl::StrCat(path, " is there already: name another file"));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", path));
  const absl::Status status = WriteTo(fd.get(), folder, files, now);
  if (!status.ok()) unlink(path.c_str());
  return status;
}

}  // namespace assay::cli
