#include "worker/cache/cache_link.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <iterator>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"
#include "worker/data/file_copy.h"

namespace assay::cache {
namespace {

constexpr int kReadersMax = 16;

struct Candidate {
  std::string name;
  JournalFile file;
  bool is_checked = false;
  bool is_damaged = false;
};

// Files that are as they were left, in the order in which they are checked.
std::vector<Candidate> Candidates(const Lease& lease, const Journal& journal, uint64_t seed) {
  std::vector<Candidate> candidates;
  for (const auto& [name, file] : journal.files) {
    const absl::StatusOr<JournalFile> now = LookAt(JoinPath(lease.files_path, name));
    if (now.ok() && now->bytes == file.bytes && now->mtime_ns == file.mtime_ns)
      candidates.push_back({.name = name, .file = file});
  }
  std::shuffle(candidates.begin(), candidates.end(), std::mt19937_64(seed));
  return candidates;
}

// As long as `is_over` allows.
absl::Status Check(const Lease& lease, const std::function<bool()>& is_stopped,
                   const std::function<bool()>& is_over, std::vector<Candidate>* candidates) {
  const int threads =
      std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kReadersMax);
  std::vector<data::CopyBuffer> buffers(static_cast<size_t>(threads));
  return dataset::ForEachIndex(
      std::ssize(*candidates), threads, [&](int thread, int64_t i) -> absl::Status {
        Candidate& one = (*candidates)[static_cast<size_t>(i)];
        if (is_over()) return absl::OkStatus();
        ASSIGN_OR_RETURN(const std::string found,
                         data::DigestFile(JoinPath(lease.files_path, one.name),
                                          &buffers[static_cast<size_t>(thread)], is_stopped));
        one.is_checked = true;
        one.is_damaged = found != one.file.sha256;
        return absl::OkStatus();
      });
}

bool HasDamage(const std::vector<Candidate>& candidates) {
  return std::any_of(candidates.begin(), candidates.end(),
                     [](const Candidate& one) { return one.is_damaged; });
}

// Other runs may hold the dataset as well: they have checked it themselves, and what they have
// linked stays theirs.
absl::Status Drop(const Lease& lease, const std::string& name) {
  const std::string path = JoinPath(lease.files_path, name);
  LOG(ERROR) << "node cache: " << path
             << " has another content than its manifest says, and is not used any more";
  if (unlink(path.c_str()) != 0 && errno != ENOENT)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot remove ", path));
  return AppendToJournal(lease.journal_path, GoneLine(name));
}

// `made`: all of them so far.
absl::Status MakeFoldersOf(const std::string& name, const std::string& target,
                           std::set<std::string>* made) {
  for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1))
    if (const std::string folder = name.substr(0, slash); made->insert(folder).second)
      RETURN_IF_ERROR(MakeDirectories(JoinPath(target, folder), kPrivateDirectory));
  return absl::OkStatus();
}

absl::Status Link(const std::string& from, const std::string& to) {
  // Pages that an earlier run has read: the caches of this one are reset for the dataset alone.
  const UniqueFd file(open(from.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (file.is_open()) posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  if (errno == EXDEV)
    return absl::FailedPreconditionError(absl::StrCat(
        "the node cache ", from, " is not on the file system of the stage directory ", to,
        ": node_cache.directory and stage_directory of the configuration have to be on one"));
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot link ", from, " to ", to));
}

}  // namespace

absl::StatusOr<Linked> LinkDataset(const Lease& lease, const LinkOptions& options,
                                   const Clock& clock) {
  ASSIGN_OR_RETURN(const Journal journal, LoadJournal(lease.journal_path));
  std::vector<Candidate> candidates = Candidates(lease, journal, options.seed);
  const MonoTime deadline = clock.Mono() + options.budget;
  RETURN_IF_ERROR(Check(
      lease, options.is_stopped, [&] { return clock.Mono() >= deadline; }, &candidates));
  const bool is_trusted = !HasDamage(candidates);
  Linked linked{.seed = options.seed};
  std::set<std::string> folders;
  for (const Candidate& one : candidates) {
    if (options.is_stopped()) return absl::CancelledError("stopped while files were linked");
    if (one.is_damaged) {
      RETURN_IF_ERROR(Drop(lease, one.name));
      linked.damaged.push_back(one.name);
      continue;
    }
    if (!one.is_checked && !is_trusted) continue;
    RETURN_IF_ERROR(MakeFoldersOf(one.name, options.target_dir, &folders));
    RETURN_IF_ERROR(
        Link(JoinPath(lease.files_path, one.name), JoinPath(options.target_dir, one.name)));
    ++linked.files;
    linked.bytes += one.file.bytes;
    if (one.is_checked) ++linked.checked_files;
  }
  std::sort(linked.damaged.begin(), linked.damaged.end());
  linked.folders.assign(folders.begin(), folders.end());
  return linked;
}

absl::StatusOr<Verified> VerifyCached(const Lease& lease, const std::function<bool()>& is_stopped) {
  ASSIGN_OR_RETURN(const Journal journal, LoadJournal(lease.journal_path));
  std::vector<Candidate> candidates = Candidates(lease, journal, /*seed=*/0);
  RETURN_IF_ERROR(Check(
      lease, is_stopped, [] { return false; }, &candidates));
  Verified verified{.changed_files = std::ssize(journal.files) - std::ssize(candidates)};
  for (const Candidate& one : candidates) {
    ++verified.files;
    verified.bytes += one.file.bytes;
    if (!one.is_damaged) continue;
    RETURN_IF_ERROR(Drop(lease, one.name));
    verified.damaged.push_back(one.name);
  }
  std::sort(verified.damaged.begin(), verified.damaged.end());
  return verified;
}

}  // namespace assay::cache
