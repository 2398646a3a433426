#include "server/store/mark.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "common/status.h"
#include "server/store/chain.h"

namespace assay::store {
namespace {

// A line, with blanks to its end; in blocks of their own, so that no write touches both.
constexpr size_t kLineBytes = 512;
constexpr size_t kBlockBytes = 4096;
constexpr int kLineCount = 2;

uint32_t ChecksumOf(absl::string_view text) {
  return libdeflate_crc32(0, text.data(), text.size());
}

// "assay-mark 1 GENERATION IDENTITY SEQ CHAIN SUBMISSION RUN TOKEN SALT SALT FRAMES CHECKSUM   \n"
std::string PrintLine(int64_t generation, const Mark& mark) {
  std::string line =
      absl::StrCat("assay-mark 1 ", generation, " ", mark.identity, " ", mark.seq, " ",
                   absl::BytesToHexString(mark.chain), " ", mark.last_submission, " ",
                   mark.last_run, " ", mark.last_token, " ", mark.wal.salt_first, " ",
                   mark.wal.salt_second, " ", mark.wal.frame_count);
  absl::StrAppendFormat(&line, " %08x", ChecksumOf(line));
  line.resize(kLineBytes - 1, ' ');
  return line + "\n";
}

struct ParsedLine {
  int64_t generation = 0;
  Mark mark;
};

// Nothing unless the whole line is as it was printed.
std::optional<ParsedLine> ParseLine(const std::string& line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipWhitespace());
  if (words.size() < 13 || words[0] != "assay-mark" || words[1] != "1") return std::nullopt;
  ParsedLine parsed;
  Mark& mark = parsed.mark;
  mark.identity = words[3];
  mark.chain = absl::HexStringToBytes(words[5]);
  const bool is_read =
      absl::SimpleAtoi(words[2], &parsed.generation) && absl::SimpleAtoi(words[4], &mark.seq) &&
      absl::SimpleAtoi(words[6], &mark.last_submission) &&
      absl::SimpleAtoi(words[7], &mark.last_run) && absl::SimpleAtoi(words[8], &mark.last_token) &&
      absl::SimpleAtoi(words[9], &mark.wal.salt_first) &&
      absl::SimpleAtoi(words[10], &mark.wal.salt_second) &&
      absl::SimpleAtoi(words[11], &mark.wal.frame_count);
  if (!is_read || PrintLine(parsed.generation, mark) != line) return std::nullopt;
  return parsed;
}

std::string NewContent(const Mark& mark) {
  const std::string line = PrintLine(1, mark);
  std::string content(kBlockBytes * kLineCount, '\0');
  content.replace(0, line.size(), line);
  return content;
}

}  // namespace

absl::StatusOr<MarkReading> ReadMark(const std::string& path) {
  MarkReading reading;
  if (!FileExists(path)) return reading;
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  for (size_t i = 0; i < kLineCount; ++i) {
    const std::string line =
        content.size() < i * kBlockBytes ? "" : content.substr(i * kBlockBytes, kLineBytes);
    const std::optional<ParsedLine> parsed = ParseLine(line);
    // The second is empty until it is its turn.
    const bool is_empty = line.find_first_not_of('\0') == std::string::npos;
    if (!parsed.has_value() && !(is_empty && reading.mark.has_value()))
      reading.problems.push_back(absl::StrCat("line ", i + 1, " is damaged"));
    if (!parsed.has_value() || parsed->generation <= reading.generation) continue;
    reading.generation = parsed->generation;
    reading.mark = parsed->mark;
  }
  return reading;
}

absl::StatusOr<std::unique_ptr<MarkFile>> MarkFile::Open(const std::string& path,
                                                         const Mark& mark) {
  ASSIGN_OR_RETURN(const MarkReading reading, ReadMark(path));
  // One that is whole is written in place, which needs no room on the disk.
  const bool is_whole = reading.mark.has_value() && reading.problems.empty();
  if (!is_whole) RETURN_IF_ERROR(WriteFileAtomic(path, NewContent(mark), kPrivateFile));
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, path);
  std::unique_ptr<MarkFile> file(new MarkFile(path, std::move(fd)));
  file->generation_ = is_whole ? reading.generation : 1;
  if (is_whole) RETURN_IF_ERROR(file->Write(mark));
  RETURN_IF_ERROR(file->Sync());
  return file;
}

absl::Status MarkFile::Write(const Mark& mark) {
  const std::string line = PrintLine(generation_ + 1, mark);
  const auto offset =
      static_cast<off_t>(static_cast<size_t>(generation_ % kLineCount) * kBlockBytes);
  const ssize_t size = pwrite(fd_.get(), line.data(), line.size(), offset);
  if (size < 0) return absl::ErrnoToStatus(errno, path_);
  if (static_cast<size_t>(size) != line.size())
    return absl::DataLossError(absl::StrCat(path_, ": only ", size, " bytes were written"));
  ++generation_;
  is_synced_ = false;
  return absl::OkStatus();
}

absl::Status MarkFile::Sync() {
  if (is_synced_) return absl::OkStatus();
  if (fdatasync(fd_.get()) != 0) return absl::ErrnoToStatus(errno, path_);
  is_synced_ = true;
  return absl::OkStatus();
}

}  // namespace assay::store
