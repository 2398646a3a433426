// Questions to the store that do not concern the core, and their answers: filters, pages, rows.

#ifndef SERVER_CORE_QUERY_H_
#define SERVER_CORE_QUERY_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "server/core/types.h"
#include "server/core/visibility.h"

namespace assay::core {

inline constexpr int32_t kPageSizeDefault = 50;
inline constexpr int32_t kPageSizeMax = 1000;

struct PageRequest {
  int32_t size = 0;   // 0 means kPageSizeDefault; capped at kPageSizeMax
  std::string token;  // empty: the first page; else next_page_token of the page before
};

template <typename T>
struct Page {
  std::vector<T> items;
  std::string next_page_token;  // empty: this is the last page
};

// Empty fields match everything that `viewer` sees, which is nothing unless it is said.
struct SubmissionFilter {
  std::string organization;
  std::string system;
  std::string benchmark;
  std::string division;
  std::string round;
  std::optional<SubmissionState> state;
  VisibleTo viewer = {};
};

struct RunFilter {
  SubmissionId submission;  // none: of all
  std::optional<RunState> state;
  VisibleTo viewer = {};  // as above
};

// A run, and how much of it is seen.
struct SeenRun {
  Run run;
  Sight sight = Sight::kNothing;
};

// One row of the event log, as an API shows it.
struct EventRow {
  int64_t seq = 0;
  int64_t at_us = 0;
  std::string type;
  int32_t version = 1;
  std::string principal;
  SubmissionId submission;
  RunId run;
  std::string body_json;
  Sight sight = Sight::kNothing;  // by whom it was read for
};

// What is asked of the audit: the log without what runs and workers do by themselves.
struct AuditQuestion {
  bool is_newest_first = false;
  int64_t after_seq = 0;  // where to go on, in the direction of reading; 0: where that begins
  std::string principal;  // empty: by anybody
  std::string object;     // the name of a resource, as "submissions/e-42"; empty: of anything
  int64_t since_us = 0;
  bool has_bodies = false;
  int32_t limit = kPageSizeDefault;
};

// A row of it.
struct AuditRow {
  EventRow event;      // without a body, unless bodies were asked for
  std::string object;  // what was changed; empty: no single resource
  std::string detail;  // why, or what has come out, as far as the event says; may be empty
};

// What one read of a log takes at most, beyond its first row: who asks next waits meanwhile.
inline constexpr size_t kLogReadBytesMax = 1 << 20;
inline size_t LogBytes(const EventRow& row) {
  return row.body_json.size();
}
inline size_t LogBytes(const AuditRow& row) {
  return LogBytes(row.event);
}
inline size_t LogBytes(const RunEvent& event) {
  return event.text.size();
}

// True if nothing followed when `items` were read with this limit of their number.
template <typename T>
bool IsEndOfLog(const std::vector<T>& items, int32_t limit) {
  size_t bytes = 0;
  for (const T& item : items)
    bytes += LogBytes(item);
  return std::ssize(items) < limit && bytes < kLogReadBytesMax;
}

// What an artifact belongs to; the same bytes may be held by several runs, then the first counts
// that is seen.
struct ArtifactInfo {
  ArtifactRef artifact;
  RunId run;
  SubmissionId submission;
  std::string organization;
  Sight sight = Sight::kNothing;  // by whom it was looked up for
};

// One thing of what is kept that is not as it was written.
struct StoredFault {
  std::string file;     // below the data directory or the backup: assay.db, assay.db-wal, mark,
                        // artifacts/ab/...
  std::string object;   // "page 7 (events)", "event 12 (RunJudged)", "artifact ... of run r-3"
  std::string problem;  // and what to do, if anything can be done
};

// What a verification has looked at.
struct VerifyCounts {
  int64_t page_count = 0;
  int64_t frame_count = 0;
  int64_t event_count = 0;
  int64_t line_count = 0;
  int64_t artifact_count = 0;          // files: one that several runs have is read once
  int64_t score_count = 0;             // submissions whose verdict was computed again
  int64_t uncomputed_score_count = 0;  // that cannot be: no rules of theirs are here
};

// How far a backup is, and what is in it. Artifacts that are damaged or missing are not.
struct BackupCounts {
  int64_t event_seq = 0;   // the last event that is in it
  int64_t page_count = 0;  // of the database
  int64_t copied_page_count = 0;
  int64_t artifact_count = 0;  // that the database names, each once
  int64_t linked_artifact_count = 0;
  int64_t copied_artifact_count = 0;
  int64_t kept_artifact_count = 0;  // that were there before
  int64_t artifact_bytes = 0;
};

// Files of one kind that the coordinator keeps.
struct UsageOfKind {
  std::string kind;  // "database", "artifacts: logs"
  int64_t count = 0;
  int64_t bytes = 0;
};
struct StoreUsage {
  std::vector<UsageOfKind> kinds;
  int64_t free_bytes = 0;  // of the file system
};

// What a look at the database itself has found.
struct StoreDiagnosis {
  int64_t schema_version = 0;         // migrations that it has
  bool is_checked = false;            // quick_check came to its end
  std::vector<std::string> problems;  // of quick_check, or why it did not come to its end
};

}  // namespace assay::core

#endif  // SERVER_CORE_QUERY_H_
