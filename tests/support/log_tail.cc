#include "tests/support/log_tail.h"

#include <sys/stat.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "common/log.h"

namespace assay::testing {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(2);
constexpr char kQuit[] = "the test is over";

}  // namespace

LogTail::LogTail(std::string fifo_path) : path_(std::move(fifo_path)) {
  CHECK(mkfifo(path_.c_str(), 0600) == 0);
  // Open for both, so that it never ends while programs come and go.
  stream_.open(path_);
  thread_ = std::thread([this] { Run(); });
}

LogTail::~LogTail() {
  std::ofstream(path_) << kQuit << std::endl;
  thread_.join();
}

void LogTail::Run() {
  std::string line;
  while (std::getline(stream_, line) && line != kQuit) {
    if (std::getenv("ASSAY_SHOW_LOG") != nullptr) LOG(INFO) << "assayd: " << line;
    MutexLock lock(&mutex_);
    lines_.push_back(line);
    changed_.NotifyAll();
  }
}

std::optional<std::string> LogTail::WaitFor(absl::string_view text) {
  const absl::Time deadline = absl::Now() + kPatience;
  MutexLock lock(&mutex_);
  for (;;) {
    while (!lines_.empty()) {
      const std::string line = std::move(lines_.front());
      lines_.pop_front();
      if (absl::StrContains(line, text)) return line;
      if (absl::StrContains(line, "level=error") || absl::StrContains(line, "level=fatal"))
        LOG(WARNING) << "assayd: " << line;
    }
    if (!changed_.WaitFor(&mutex_, absl::ToChronoNanoseconds(deadline - absl::Now())) &&
        absl::Now() >= deadline)
      return std::nullopt;
  }
}

}  // namespace assay::testing
