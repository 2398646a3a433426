#include "worker/agent/log_tail.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/status.h"

namespace assay::agent {
namespace {

constexpr int64_t kTailBytes = 64 << 10;

}  // namespace

absl::Status LogTail::OpenIfThere() {
  if (fd_.is_open()) return absl::OkStatus();
  absl::StatusOr<UniqueFd> opened = OpenRegularFile(path_, Links::kRefuse);
  if (absl::IsNotFound(opened.status())) return absl::OkStatus();
  RETURN_IF_ERROR(opened.status());
  fd_ = *std::move(opened);
  return absl::OkStatus();
}

void LogTail::EndLine(std::vector<TailLine>* lines) {
  lines->push_back(TailLine{std::move(partial_), ++line_count_, offset_});
  partial_.clear();
  has_partial_ = false;
}

void LogTail::Take(absl::string_view bytes, std::vector<TailLine>* lines) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const absl::string_view part = bytes.substr(0, end);
    const auto room = static_cast<size_t>(kLineBytesMax) - partial_.size();
    partial_.append(part.data(), std::min(part.size(), room));
    has_partial_ = true;
    offset_ += static_cast<int64_t>(part.size());
    bytes.remove_prefix(part.size());
    if (end == absl::string_view::npos) return;
    bytes.remove_prefix(1);
    ++offset_;
    EndLine(lines);
  }
}

absl::StatusOr<std::vector<TailLine>> LogTail::Read(bool is_final, int64_t bytes_max) {
  std::vector<TailLine> lines;
  RETURN_IF_ERROR(OpenIfThere());
  if (!fd_.is_open()) return lines;
  ASSIGN_OR_RETURN(const int64_t size, FileSize(path_));
  if (size < offset_) {
    return absl::DataLossError(
        absl::StrCat(path_, " shrank from ", offset_, " to ", size, " bytes while it was read"));
  }
  std::string buffer(static_cast<size_t>(kTailBytes), '\0');
  for (int64_t total = 0; total < bytes_max || lines.empty();) {
    const ssize_t n = pread(fd_.get(), buffer.data(), buffer.size(), offset_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path_));
    if (n == 0) {
      if (is_final && has_partial_) EndLine(&lines);
      return lines;
    }
    total += n;
    Take(absl::string_view(buffer.data(), static_cast<size_t>(n)), &lines);
  }
  return lines;
}

}  // namespace assay::agent
