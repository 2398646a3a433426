#include "server/store/prune.h"

#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/status.h"
#include "server/core/event.h"
#include "server/core/types.h"
#include "server/store/artifacts.h"
#include "server/store/codec.h"
#include "server/store/sqlite.h"

namespace assay::store {
namespace {

constexpr int64_t kArtifactsOfStep = 1000;
static_assert(kArtifactsOfStep <= int64_t{core::kPrunedArtifactCountMax});

constexpr char kSelectPrunable[] =
    "SELECT artifacts.id, artifacts.run_id, artifacts.file_name, artifacts.sha256, "
    "artifacts.size_bytes, runs.submission_id FROM artifacts "
    "JOIN runs ON runs.id = artifacts.run_id WHERE artifacts.id > ?1 ORDER BY artifacts.id "
    "LIMIT ?2";
// Whose bytes they are, by the index of digests.
constexpr char kSelectHolders[] =
    "SELECT artifacts.file_name, submissions.state, submissions.ended_at_us FROM artifacts "
    "JOIN runs ON runs.id = artifacts.run_id "
    "JOIN submissions ON submissions.id = runs.submission_id WHERE artifacts.sha256 = ?1";
constexpr char kSelectPruned[] =
    "SELECT version, body FROM events INDEXED BY events_of_changes "
    "WHERE is_change = 1 AND seq > 0 AND type = ?1";

}  // namespace

struct Pruning::Work {
  Work(Db opened, std::unique_ptr<ArtifactStore> store, const PruneLimits& given)
      : db(std::move(opened)), artifacts(std::move(store)), limits(given) {}

  bool IsAllowed(absl::string_view file_name, absl::string_view state, int64_t ended_us) const;
  absl::StatusOr<bool> MayGo(const std::string& sha256);

  Db db;
  const std::unique_ptr<ArtifactStore> artifacts;
  const PruneLimits limits;
  int64_t last_id = 0;
  bool is_done = false;
};

Pruning::Pruning(std::unique_ptr<Work> work) : work_(std::move(work)) {}
Pruning::~Pruning() = default;

absl::StatusOr<std::unique_ptr<Pruning>> Pruning::Open(const std::string& data_directory,
                                                       const PruneLimits& limits) {
  const std::string path = JoinPath(data_directory, "assay.db");
  if (!FileExists(path)) return absl::NotFoundError(absl::StrCat("there is no ", path));
  ASSIGN_OR_RETURN(Db db, Db::Open(path, OpenMode::kReadOnly));
  auto work = std::make_unique<Work>(
      std::move(db), ArtifactStore::Reopen(JoinPath(data_directory, "artifacts")), limits);
  return std::unique_ptr<Pruning>(new Pruning(std::move(work)));
}

bool Pruning::is_done() const {
  return work_->is_done;
}

bool Pruning::Work::IsAllowed(absl::string_view file_name, absl::string_view state,
                              int64_t ended_us) const {
  const absl::string_view kind = core::PrunableKind(file_name);
  if (kind.empty()) return false;
  const std::optional<core::SubmissionState> known = core::ParseSubmissionState(state);
  if (!known.has_value() || !IsTerminal(*known)) return false;
  return ended_us < (kind == "telemetry" ? limits.telemetry_ended_us : limits.progress_ended_us);
}

// Whether all that hold these bytes allow it.
absl::StatusOr<bool> Pruning::Work::MayGo(const std::string& sha256) {
  ASSIGN_OR_RETURN(Stmt select, db.Prepare(kSelectHolders));
  RETURN_IF_ERROR(select.Bind(sha256));
  while (true) {
    ASSIGN_OR_RETURN(const bool is_row, select.Step());
    if (!is_row) return true;
    if (!IsAllowed(select.Text(0), select.Text(1), select.Int(2))) return false;
  }
}

absl::StatusOr<std::vector<core::PrunableFiles>> Pruning::Step() {
  Work& work = *work_;
  ASSIGN_OR_RETURN(Stmt select, work.db.Prepare(kSelectPrunable));
  RETURN_IF_ERROR(select.Bind(work.last_id, kArtifactsOfStep));
  std::map<std::pair<int64_t, std::string>, core::PrunableFiles> found;
  std::set<std::string> seen;
  int64_t row_count = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool is_row, select.Step());
    if (!is_row) break;
    ++row_count;
    work.last_id = select.Int(0);
    const std::string kind(core::PrunableKind(select.Text(2)));
    const std::string sha256(select.Text(3));
    if (kind.empty() || !work.artifacts->Has(sha256) || !seen.insert(sha256).second) continue;
    ASSIGN_OR_RETURN(const bool may_go, work.MayGo(sha256));
    if (!may_go) continue;
    core::PrunableFiles& files = found[{select.Int(5), kind}];
    files.submission.number = select.Int(5);
    files.kind = kind;
    files.artifacts.push_back({core::RunId{select.Int(1)},
                               {.file_name = std::string(select.Text(2)),
                                .sha256 = sha256,
                                .size_bytes = select.Int(4)}});
  }
  work.is_done = row_count < kArtifactsOfStep;
  std::vector<core::PrunableFiles> all;
  for (auto& [key, files] : found)
    all.push_back(std::move(files));
  return all;
}

absl::Status Pruning::Remove(const std::vector<core::PrunedArtifact>& artifacts) {
  for (const core::PrunedArtifact& pruned : artifacts) {
    ASSIGN_OR_RETURN(const bool may_go, work_->MayGo(pruned.artifact.sha256));
    if (may_go) RETURN_IF_ERROR(work_->artifacts->Remove(pruned.artifact.sha256));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::set<std::string>> ReadPruned(Db* db) {
  ASSIGN_OR_RETURN(Stmt select, db->Prepare(kSelectPruned));
  RETURN_IF_ERROR(select.Bind(core::ArtifactsPruned::kType));
  std::set<std::string> digests;
  while (true) {
    ASSIGN_OR_RETURN(const bool is_row, select.Step());
    if (!is_row) return digests;
    ASSIGN_OR_RETURN(
        const core::Event event,
        DecodeEvent(core::ArtifactsPruned::kType, static_cast<int>(select.Int(0)), select.Text(1)));
    for (const core::PrunedArtifact& pruned : std::get<core::ArtifactsPruned>(event).artifacts)
      digests.insert(pruned.artifact.sha256);
  }
}

}  // namespace assay::store
