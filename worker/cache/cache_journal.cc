#include "worker/cache/cache_journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"

#include "common/file.h"
#include "common/status.h"

namespace assay::cache {
namespace {

constexpr absl::string_view kFormat = "assay-node-cache-1";
// 3 million lines, as many as a manifest has files.
constexpr int64_t kJournalBytesMax = int64_t{1} << 30;
constexpr size_t kSha256Digits = 64;

absl::Status BadLine(int64_t line) {
  return absl::DataLossError(absl::StrCat("line ", line, " is no line of a journal"));
}

absl::StatusOr<Journal> ParseHead(absl::string_view line) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, absl::MaxSplits(' ', 3));
  Journal journal;
  if (words.size() != 4 || words[0] != kFormat ||
      !absl::SimpleAtoi(words[1], &journal.bytes_total) ||
      !absl::SimpleAtoi(words[2], &journal.files_total))
    return BadLine(1);
  journal.name = std::string(words[3]);
  return journal;
}

// False: it is no line of a journal.
bool ParseLine(absl::string_view line, Journal* journal) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, absl::MaxSplits(' ', 4));
  if (words.size() >= 2 && words[0] == "-") {
    journal->files.erase(std::string(line.substr(2)));
    return true;
  }
  JournalFile file;
  if (words.size() != 5 || words[0] != "+" || !absl::SimpleAtoi(words[1], &file.mtime_ns) ||
      !absl::SimpleAtoi(words[2], &file.bytes) || words[3].size() != kSha256Digits)
    return false;
  file.sha256 = std::string(words[3]);
  journal->files[std::string(words[4])] = std::move(file);
  return true;
}

}  // namespace

int64_t Journal::Bytes() const {
  int64_t bytes = 0;
  for (const auto& [path, file] : files)
    bytes += file.bytes;
  return bytes;
}

absl::StatusOr<Journal> ParseJournal(absl::string_view text) {
  Journal journal;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos) break;
    const absl::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (number == 1) {
      ASSIGN_OR_RETURN(journal, ParseHead(line));
    } else if (!ParseLine(line, &journal)) {
      return BadLine(number);
    }
  }
  return journal;
}

std::string HeadLine(const Journal& journal) {
  return absl::StrCat(kFormat, " ", journal.bytes_total, " ", journal.files_total, " ",
                      journal.name, "\n");
}

std::string FinishedLine(absl::string_view path, const JournalFile& file) {
  return absl::StrCat("+ ", file.mtime_ns, " ", file.bytes, " ", file.sha256, " ", path, "\n");
}

std::string GoneLine(absl::string_view path) {
  return absl::StrCat("- ", path, "\n");
}

bool HasLineBreak(absl::string_view path) {
  return path.find('\n') != absl::string_view::npos;
}

absl::StatusOr<Journal> LoadJournal(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kJournalBytesMax, Links::kRefuse));
  absl::StatusOr<Journal> journal = ParseJournal(text);
  if (!journal.ok()) return Annotate(journal.status(), path);
  return journal;
}

absl::Status AppendToJournal(const std::string& path, absl::string_view lines) {
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  RETURN_IF_ERROR(Annotate(WriteAll(fd.get(), lines), path));
  if (fdatasync(fd.get()) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot sync ", path));
  return absl::OkStatus();
}

absl::Status CutJournal(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kJournalBytesMax, Links::kRefuse));
  const size_t end = text.rfind('\n') + 1;  // 0: not one whole line
  if (end == text.size()) return absl::OkStatus();
  if (truncate(path.c_str(), static_cast<off_t>(end)) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot cut ", path));
  return absl::OkStatus();
}

absl::StatusOr<JournalFile> LookAt(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot stat ", path));
  if (!S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  return JournalFile{.mtime_ns = absl::ToUnixNanos(absl::TimeFromTimespec(info.st_mtim)),
                     .bytes = info.st_size};
}

}  // namespace assay::cache
