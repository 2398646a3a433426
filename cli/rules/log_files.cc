#include "cli/rules/log_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/mllog.h"
#include "common/mutex.h"
#include "common/rules/log_rules.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr int kDepthMax = 32;
constexpr size_t kReadBytes = size_t{64} << 10;  // small enough to come from the heap, not mmap
constexpr char kStandardInput[] = "-";

bool IsResultFile(absl::string_view name) {
  return absl::StartsWith(name, "result_") && absl::EndsWith(name, ".txt");
}

// The type of what `path` is or, where `follow`, what it links to; 0 if there is nothing.
mode_t TypeOf(const std::string& path, bool follow) {
  struct stat info = {};
  const int found = follow ? stat(path.c_str(), &info) : lstat(path.c_str(), &info);
  return found == 0 ? info.st_mode & S_IFMT : 0;
}

absl::Status Walk(const LogFile& folder, int depth, std::vector<LogFile>* files) {
  if (depth > kDepthMax)
    return absl::InvalidArgumentError(
        absl::StrCat(folder.shown, ": folders are nested more than ", kDepthMax, " deep"));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder.path));
  for (const std::string& name : names) {
    LogFile child{JoinPath(folder.shown, name), JoinPath(folder.path, name)};
    if (TypeOf(child.path, /*follow=*/false) == S_IFDIR) {
      RETURN_IF_ERROR(Walk(child, depth + 1, files));
    } else if (IsResultFile(name) && TypeOf(child.path, /*follow=*/true) != S_IFDIR) {
      files->push_back(std::move(child));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> Open(const LogFile& file) {
  if (!file.is_named) return OpenRegularFile(file.path);
  UniqueFd fd(file.path == kStandardInput
                  ? dup(STDIN_FILENO)
                  : open(file.path.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, "cannot open");
  return fd;
}

// Hands every piece of the file to `take`.
absl::Status ReadPieces(const LogFile& file, absl::FunctionRef<void(absl::string_view)> take) {
  ASSIGN_OR_RETURN(const UniqueFd fd, Open(file));
  std::string buffer(kReadBytes, '\0');
  for (int64_t byte_count = 0; byte_count <= kMllogFileBytesMax;) {
    const ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, "cannot read");
    if (n == 0) return absl::OkStatus();
    take(absl::string_view(buffer.data(), static_cast<size_t>(n)));
    byte_count += n;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("more than the ", kMllogFileBytesMax, " bytes that a log may have"));
}

rules::CheckResult Unreadable(const absl::Status& why, const rules::RuleSet& rules) {
  return {.findings = {rules::LogFinding("R-LOG-005", "unreadable", 0, std::string(why.message()))},
          .rule_set = rules.name(),
          .digest = rules.digest()};
}

// Judges files on threads of its own; the results are taken in order.
class Judges {
 public:
  Judges(const std::vector<LogFile>& files, const rules::RuleSet& rules,
         rules::CheckOptions options)
      : files_(files), rules_(rules), options_(options), judged_(files.size()) {
    const size_t count = std::min<size_t>(files.size(), std::thread::hardware_concurrency());
    for (size_t i = 0; i < std::max<size_t>(count, 1); ++i)
      threads_.emplace_back([this] { Work(); });
  }
  ~Judges() {
    for (std::thread& thread : threads_)
      thread.join();
  }
  Judges(const Judges&) = delete;
  Judges& operator=(const Judges&) = delete;

  // Waits for the verdict on file `index`. Once per file.
  JudgedLog Take(size_t index) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    while (!judged_[index].has_value())
      is_judged_.Wait(&mutex_);
    JudgedLog judged = *std::move(judged_[index]);
    judged_[index].reset();
    return judged;
  }

 private:
  void Work() ABSL_LOCKS_EXCLUDED(mutex_) {
    for (;;) {
      size_t index = 0;
      {
        const MutexLock lock(&mutex_);
        if (next_ == files_.size()) return;
        index = next_++;
      }
      JudgedLog judged = JudgeLogFile(files_[index], rules_, options_);
      const MutexLock lock(&mutex_);
      judged_[index] = std::move(judged);
      is_judged_.NotifyAll();
    }
  }

  const std::vector<LogFile>& files_;
  const rules::RuleSet& rules_;
  const rules::CheckOptions options_;
  Mutex mutex_;
  CondVar is_judged_;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::optional<JudgedLog>> judged_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace

absl::StatusOr<std::vector<LogFile>> FindLogFiles(const Environment& environment,
                                                  const std::vector<std::string>& paths) {
  std::vector<LogFile> files;
  for (const std::string& path : paths) {
    LogFile file{path, path == kStandardInput ? path : environment.AbsolutePath(path),
                 /*is_named=*/true};
    if (TypeOf(file.path, /*follow=*/true) == S_IFDIR) {
      RETURN_IF_ERROR(Walk(file, 0, &files));
    } else {
      files.push_back(std::move(file));
    }
  }
  if (files.empty()) return absl::NotFoundError("no result_*.txt file there, at any depth");
  std::sort(files.begin(), files.end(),
            [](const LogFile& a, const LogFile& b) { return a.shown < b.shown; });
  const auto is_same = [](const LogFile& a, const LogFile& b) { return a.shown == b.shown; };
  files.erase(std::unique(files.begin(), files.end(), is_same), files.end());
  return files;
}

JudgedLog JudgeLogFile(const LogFile& file, const rules::RuleSet& rules,
                       rules::CheckOptions options) {
  Sha256 hash;
  rules::StreamChecker checker(rules);
  const absl::Status read = ReadPieces(file, [&](absl::string_view piece) {
    hash.Add(piece);
    checker.Add(piece);
  });
  if (!read.ok()) return {.result = Unreadable(read, rules)};
  return {.sha256 = hash.HexDigest(), .result = checker.Finish(options)};
}

void JudgeLogFiles(const std::vector<LogFile>& files, const rules::RuleSet& rules,
                   rules::CheckOptions options,
                   absl::FunctionRef<void(const LogFile&, const JudgedLog&)> on_judged) {
  Judges judges(files, rules, options);
  for (size_t i = 0; i < files.size(); ++i)
    on_judged(files[i], judges.Take(i));
}

}  // namespace assay::cli
