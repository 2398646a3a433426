// The journal of one dataset in a node's cache: which of its files are whole.
//
// The first line says what the dataset is, each further one that a file is finished (and how it was
// then) or gone. Lines are appended in one write each; a line that a crash has cut is no line.

#ifndef WORKER_CACHE_CACHE_JOURNAL_H_
#define WORKER_CACHE_CACHE_JOURNAL_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace assay::cache {

// A finished file, as it was left.
struct JournalFile {
  int64_t mtime_ns = 0;  // since 1970
  int64_t bytes = 0;
  std::string sha256;

  friend bool operator==(const JournalFile&, const JournalFile&) = default;
};

struct Journal {
  std::string name;  // of the dataset, for people
  int64_t bytes_total = 0;
  int64_t files_total = 0;
  std::map<std::string, JournalFile> files;  // by path below the dataset

  int64_t Bytes() const;
};

// DATA_LOSS, naming the line, for what is no journal; a last line without its end is left out.
absl::StatusOr<Journal> ParseJournal(absl::string_view text);

// Lines with their end. A path has no line break (HasLineBreak): who writes makes sure.
std::string HeadLine(const Journal& journal);
std::string FinishedLine(absl::string_view path, const JournalFile& file);
std::string GoneLine(absl::string_view path);
bool HasLineBreak(absl::string_view path);

// As ParseJournal; NOT_FOUND if there is none.
absl::StatusOr<Journal> LoadJournal(const std::string& path);

// Appends whole lines and brings them to the device. Whoever appends to what a crash may have cut
// calls CutJournal first, alone.
absl::Status AppendToJournal(const std::string& path, absl::string_view lines);
absl::Status CutJournal(const std::string& path);

// The file as it is now, without its digest; errno's code.
absl::StatusOr<JournalFile> LookAt(const std::string& path);

}  // namespace assay::cache

#endif  // WORKER_CACHE_CACHE_JOURNAL_H_
