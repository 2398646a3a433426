#include "worker/agent/telemetry/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include "common/telemetry/series.h"

namespace assay::agent {
namespace {

constexpr size_t kFirstBytes = 16 << 10;
constexpr size_t kBytesMax = 4 << 20;

}  // namespace

KernelFile::KernelFile(const std::string& path)
    : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)), text_(kFirstBytes, '\0') {}

absl::string_view KernelFile::Read() {
  if (!file_.is_open()) return {};
  size_t size = 0;
  for (;;) {
    const ssize_t n =
        pread(file_.get(), text_.data() + size, text_.size() - size, static_cast<off_t>(size));
    if (n < 0) return {};
    if (n == 0) return absl::string_view(text_).substr(0, size);
    size += static_cast<size_t>(n);
    if (size < text_.size()) continue;
    if (size >= kBytesMax) return {};
    text_.resize(2 * size);
  }
}

std::optional<int64_t> KernelFile::ReadNumber() {
  int64_t number = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(Read()), &number)) return std::nullopt;
  return number;
}

std::vector<absl::string_view> WordsOf(absl::string_view line) {
  return absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
}

int64_t NumberOf(absl::string_view word) {
  int64_t number = 0;
  return absl::SimpleAtoi(word, &number) ? number : telemetry::kMissing;
}

}  // namespace assay::agent
