#include "server/store/compression.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"
#include "server/core/event.h"
#include "server/store/artifacts.h"
#include "server/store/sqlite.h"

namespace assay::store {
namespace {

constexpr int64_t kEventsOfStep = 1000;

// By the index of changes, of which the end of a submission is one.
constexpr char kSelectChanges[] =
    "SELECT seq, type, submission_id FROM events INDEXED BY events_of_changes "
    "WHERE is_change = 1 AND seq > ?1 ORDER BY seq "
    "LIMIT ?2";
// A node's telemetry is compressed by itself (common/telemetry/series.h).
constexpr char kSelectArtifactsOfSubmission[] =
    "SELECT DISTINCT sha256 FROM artifacts JOIN runs ON runs.id = artifacts.run_id "
    "WHERE runs.submission_id = ?1 AND artifacts.is_late = 0 AND "
    "artifacts.file_name NOT GLOB 'telemetry_*'";

}  // namespace

struct Compression::Work {
  Work(Db opened, std::unique_ptr<ArtifactStore> store)
      : db(std::move(opened)), artifacts(std::move(store)) {}

  absl::StatusOr<bool> ReadLog();
  absl::Status ReadArtifacts(int64_t submission);

  Db db;
  const std::unique_ptr<ArtifactStore> artifacts;
  CompressionCounts counts;
  int64_t last_seq = 0;
  std::vector<int64_t> ended;        // submissions that are to be looked at
  std::vector<std::string> waiting;  // artifacts of one
};

Compression::Compression(std::unique_ptr<Work> work) : work_(std::move(work)) {}
Compression::~Compression() = default;

absl::StatusOr<std::unique_ptr<Compression>> Compression::Open(const std::string& data_directory) {
  ASSIGN_OR_RETURN(Db db, Db::Open(JoinPath(data_directory, "assay.db"), OpenMode::kReadOnly));
  auto work = std::make_unique<Work>(std::move(db),
                                     ArtifactStore::Reopen(JoinPath(data_directory, "artifacts")));
  return std::unique_ptr<Compression>(new Compression(std::move(work)));
}

const CompressionCounts& Compression::counts() const {
  return work_->counts;
}

// False at the end of the log.
absl::StatusOr<bool> Compression::Work::ReadLog() {
  ASSIGN_OR_RETURN(Stmt select, db.Prepare(kSelectChanges));
  RETURN_IF_ERROR(select.Bind(last_seq, kEventsOfStep));
  bool is_more = false;
  while (true) {
    ASSIGN_OR_RETURN(const bool is_row, select.Step());
    if (!is_row) return is_more;
    is_more = true;
    last_seq = select.Int(0);
    if (select.Text(1) == core::SubmissionClosed::kType ||
        select.Text(1) == core::SubmissionImported::kType)
      ended.push_back(select.Int(2));
  }
}

absl::Status Compression::Work::ReadArtifacts(int64_t submission) {
  ASSIGN_OR_RETURN(Stmt select, db.Prepare(kSelectArtifactsOfSubmission));
  RETURN_IF_ERROR(select.Bind(submission));
  while (true) {
    ASSIGN_OR_RETURN(const bool is_row, select.Step());
    if (!is_row) return absl::OkStatus();
    waiting.emplace_back(select.Text(0));
  }
}

absl::StatusOr<bool> Compression::Step() {
  Work& work = *work_;
  if (work.waiting.empty() && work.ended.empty()) return work.ReadLog();
  if (work.waiting.empty()) {
    RETURN_IF_ERROR(work.ReadArtifacts(work.ended.back()));
    work.ended.pop_back();
    return true;
  }
  const std::string& sha256 = work.waiting.back();
  const absl::StatusOr<int64_t> saved = work.artifacts->Compress(sha256);
  if (!saved.ok() && !absl::IsDataLoss(saved.status()) && !absl::IsNotFound(saved.status()))
    return saved.status();
  if (!saved.ok()) LOG(ERROR) << "not compressed status=" << saved.status();
  if (saved.ok() && *saved > 0) {
    ++work.counts.file_count;
    work.counts.saved_bytes += *saved;
  }
  work.waiting.pop_back();
  return true;
}

}  // namespace assay::store
