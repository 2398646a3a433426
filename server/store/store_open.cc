// Opening a database: what it has to agree with, and going on without what is lost.

#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"
#include "server/core/apply.h"
#include "server/store/chain.h"
#include "server/store/facts.h"
#include "server/store/head.h"
#include "server/store/migrate.h"
#include "server/store/store.h"
#include "server/store/store_statements.h"
#include "server/store/wal_check.h"

namespace assay::store {
namespace {

using Losses = std::vector<std::string>;

constexpr char kSelectChain[] = "SELECT chain FROM events WHERE seq = ?1";
constexpr char kCountUnmarked[] = "SELECT COUNT(id) FROM log_identity WHERE is_marked = 0";
constexpr char kMarkWritten[] = "UPDATE log_identity SET is_marked = 1 WHERE is_marked = 0";

bool IsMissingOrEmpty(const std::string& path) {
  const absl::StatusOr<int64_t> size = FileSize(path);
  return !size.ok() || *size == 0;
}

// What is missing that can be seen before SQLite has looked, which makes an empty database of none
// and takes a damaged log for a short one.
absl::StatusOr<Losses> LossesOfFiles(const std::string& path, const MarkReading& reading,
                                     const OpenOptions& options) {
  Losses losses;
  if (!reading.mark.has_value()) {
    for (const std::string& problem : reading.problems)
      losses.push_back(absl::StrCat("of the file mark, ", problem));
  }
  const bool is_missing = IsMissingOrEmpty(path);
  if (is_missing && reading.mark.has_value()) {
    losses.push_back(
        absl::StrCat("assay.db is missing or empty; it held events 1 to ", reading.mark->seq));
  } else if (is_missing && (options.is_database_expected || !reading.problems.empty())) {
    losses.push_back(
        "assay.db is missing or empty, but beside it is what it has left: secret, artifacts or "
        "mark");
  }
  if (!is_missing && reading.mark.has_value()) {
    ASSIGN_OR_RETURN(const std::optional<WalFault> fault,
                     CheckWal(path + "-wal", reading.mark->wal));
    if (fault.has_value()) losses.push_back(fault->problem);
  }
  return losses;
}

absl::Status Refusal(const std::string& path, const Losses& losses) {
  const std::string folder = path.substr(0, path.rfind('/'));
  return absl::DataLossError(absl::StrCat(
      "what was acknowledged is not there:\n  ", absl::StrJoin(losses, "\n  "),
      "\nPut back assay.db, assay.db-wal, mark and artifacts/ of ", folder,
      ", all of one time; assayd --verify says more of what is damaged. To go on without what is "
      "missing, start once with --accept_data_loss: the log of events will say so, and no id is "
      "given again"));
}

}  // namespace

std::string MarkPath(const std::string& database_path) {
  const size_t slash = database_path.rfind('/');
  return slash == std::string::npos ? "mark" : JoinPath(database_path.substr(0, slash), "mark");
}

Store::Store(std::unique_ptr<Statements> statements) : statements_(std::move(statements)) {}

// The last connection removes the log. Before that the mark has to say that it does not matter: a
// kill in between is no loss.
Store::~Store() {
  if (mark_ == nullptr || !statements_->db.Checkpoint().ok() ||
      statements_->db.uncopied_frames() > 0)
    return;
  head_.wal = {};
  absl::Status status = mark_->Write(head_);
  if (status.ok()) status = mark_->Sync();
  if (!status.ok()) LOG(ERROR) << "mark status=" << Quoted(status);
}

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const std::string& path,
                                                   const OpenOptions& options) {
  ASSIGN_OR_RETURN(const MarkReading reading, ReadMark(MarkPath(path)));
  ASSIGN_OR_RETURN(Losses losses, LossesOfFiles(path, reading, options));
  if (!losses.empty() && !options.is_loss_accepted) return Refusal(path, losses);

  auto statements = std::make_unique<Statements>();
  statements->path = path;
  RETURN_IF_ERROR(AddPageChecksums(path));
  ASSIGN_OR_RETURN(statements->db, Db::Open(path, OpenMode::kReadWriteCreate));
  RETURN_IF_ERROR(Migrate(&statements->db, path, EmbeddedMigrations()));
  RETURN_IF_ERROR(statements->Prepare());
  std::unique_ptr<Store> store(new Store(std::move(statements)));

  ASSIGN_OR_RETURN(const Losses differences, store->LoadHead(reading.mark));
  losses.insert(losses.end(), differences.begin(), differences.end());
  if (!losses.empty()) {
    if (!options.is_loss_accepted) return Refusal(path, losses);
    RETURN_IF_ERROR(store->RecordLoss(losses, reading.mark, options.now_us));
  }
  RETURN_IF_ERROR(RebuildFacts(&store->statements_->db, options.are_facts_rebuilt));
  RETURN_IF_ERROR(store->OpenMark(reading.mark));
  return store;
}

absl::StatusOr<Losses> Store::LoadHead(const std::optional<Mark>& mark) {
  ASSIGN_OR_RETURN(const Head head, ReadHead(&statements_->db));
  head_ = head.mark;
  if (mark.has_value()) return CompareWith(*mark);
  if (!head.is_marked) return Losses{};
  return Losses{"the file mark is missing: whether events are missing cannot be known"};
}

absl::StatusOr<Losses> Store::CompareWith(const Mark& mark) {
  if (head_.identity != mark.identity)
    return Losses{absl::StrCat(
        "assay.db is another database than the one that the file mark is of: ", head_.identity,
        " with ", head_.seq, " events, not ", mark.identity, " with ", mark.seq)};
  if (head_.seq < mark.seq)
    return Losses{absl::StrCat("events ", head_.seq + 1, " to ", mark.seq,
                               " are missing from assay.db and assay.db-wal")};
  if (mark.seq == 0) return Losses{};
  ASSIGN_OR_RETURN(Stmt select, statements_->db.Prepare(kSelectChain));
  RETURN_IF_ERROR(select.Bind(mark.seq));
  ASSIGN_OR_RETURN(const bool is_row, select.Step());
  if (!is_row || select.Text(0) != mark.chain)
    return Losses{absl::StrCat("event ", mark.seq,
                               " or one before it is not the one that was acknowledged: its hash "
                               "differs from the one in the file mark")};
  return Losses{};
}

absl::Status Store::RecordLoss(const Losses& losses, const std::optional<Mark>& mark,
                               int64_t now_us) {
  ASSIGN_OR_RETURN(core::State state, Load());
  core::DataLossAccepted event = {.last_submission = state.last_submission,
                                  .last_run = state.last_run,
                                  .last_token = state.last_token,
                                  .reason = absl::StrJoin(losses, "; ")};
  if (mark.has_value()) {
    event.last_submission = std::max(event.last_submission, mark->last_submission);
    event.last_run = std::max(event.last_run, mark->last_run);
    event.last_token = std::max(event.last_token, mark->last_token);
    if (mark->seq > head_.seq) {
      event.first_lost_seq = head_.seq + 1;
      event.last_lost_seq = mark->seq;
    }
  }
  core::Outcome outcome;
  outcome.events.push_back({.seq = std::max(head_.seq, event.last_lost_seq) + 1,
                            .at_us = now_us,
                            .principal = std::string(core::kCoordinator),
                            .event = event});
  core::Apply(outcome.events.back(), &state);
  LOG(WARNING) << "data loss accepted reason=" << Quoted(event.reason);
  return Commit(outcome, state);
}

// In this order: a database that says it is marked has a mark.
absl::Status Store::OpenMark(const std::optional<Mark>& previous) {
  // What a crash has left in the log is copied, and counted.
  const absl::Status copied = statements_->db.Checkpoint();
  if (!copied.ok() && !absl::IsResourceExhausted(copied)) return copied;
  head_.wal = statements_->db.wal_extent();
  if (!copied.ok() && previous.has_value()) head_.wal = previous->wal;
  ASSIGN_OR_RETURN(mark_, MarkFile::Open(MarkPath(statements_->path), head_));
  ASSIGN_OR_RETURN(const int64_t unmarked, statements_->db.QueryInt(kCountUnmarked));
  return unmarked == 0 ? absl::OkStatus() : statements_->db.Exec(kMarkWritten);
}

void Store::WriteMark() {
  if (mark_ == nullptr) return;
  head_.wal = statements_->db.wal_extent();
  // What was committed is committed: without a mark only its loss would not be noticed.
  if (const absl::Status status = mark_->Write(head_); !status.ok())
    LOG(ERROR) << "high-water mark not written seq=" << head_.seq << " status=" << Quoted(status);
}

absl::Status Store::SyncMark() {
  return mark_ == nullptr ? absl::OkStatus() : mark_->Sync();
}

}  // namespace assay::store
