// Reading back what Commit has written.

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/core/apply.h"
#include "server/store/codec.h"
#include "server/store/rows.h"
#include "server/store/store.h"
#include "server/store/store_statements.h"

namespace assay::store {
namespace {

constexpr char kSelectCounters[] = "SELECT name, value FROM counters";
// Submissions that live: those that have not ended, and those of which a worker holds a run.
constexpr char kSelectSubmissions[] =
    "SELECT body FROM submissions WHERE state IN ('OPEN', 'RUNNING', 'CHECKING') "
    "UNION ALL SELECT body FROM submissions WHERE state IN ('VALID', 'INVALID', 'CANCELLED') AND "
    "id IN (SELECT submission_id FROM runs JOIN workers ON workers.run_id = runs.id)";
constexpr char kSelectWorkers[] = "SELECT body FROM workers WHERE is_forgotten = 0";
// Those that have not ended, and those that still have workers.
constexpr char kSelectAllocations[] =
    "SELECT body FROM allocations WHERE state <> 'ENDED' OR id IN "
    "(SELECT allocation_id FROM workers WHERE allocation_id IS NOT NULL AND is_forgotten = 0)";
constexpr char kSelectDatasets[] = "SELECT body FROM datasets";
constexpr char kSelectViews[] = "SELECT body FROM views";
constexpr char kSelectTokens[] = "SELECT body FROM tokens WHERE is_forgotten = 0";
constexpr char kSelectRequests[] =
    "SELECT role, organization, principal, request_id, made, at_us FROM requests";
constexpr char kSelectImports[] = "SELECT round, source_path, submission_id FROM imports";
constexpr char kSelectBorrowings[] = "SELECT own_id, submission_id FROM borrowings";
constexpr char kSelectPassed[] = "SELECT submission_id, node, body FROM passed_preflights";
constexpr char kSelectRates[] = "SELECT node_type, check_name, body FROM node_rates";
constexpr char kSelectPacks[] = "SELECT digest, pack FROM rule_packs";
constexpr char kInsertPack[] = "INSERT OR IGNORE INTO rule_packs (digest, pack) VALUES (?1, ?2)";

absl::Status DecodeInto(const Stmt& stmt, core::State* state) {
  ASSIGN_OR_RETURN(const core::Submission submission, DecodeSubmission(stmt.Text(0)));
  state->submissions[submission.id] = submission;
  return absl::OkStatus();
}

// Calls `take` for each row.
template <typename Take>
absl::Status ForEachRow(Db* db, absl::string_view sql, Take take) {
  ASSIGN_OR_RETURN(Stmt stmt, db->Prepare(sql));
  while (true) {
    ASSIGN_OR_RETURN(const bool is_row, stmt.Step());
    if (!is_row) return absl::OkStatus();
    RETURN_IF_ERROR(take(stmt));
  }
}

absl::StatusOr<Store::RulePacks> PacksIn(Db* db) {
  Store::RulePacks packs;
  RETURN_IF_ERROR(ForEachRow(db, kSelectPacks, [&packs](const Stmt& stmt) {
    packs.emplace(stmt.Text(0), stmt.Text(1));
    return absl::OkStatus();
  }));
  return packs;
}

}  // namespace

absl::StatusOr<core::Run> Store::LoadRun(core::RunId id) {
  Stmt& select = statements_->select_run;
  RETURN_IF_ERROR(select.Bind(id.number));
  ASSIGN_OR_RETURN(const bool is_row, select.Step());
  if (!is_row) return absl::NotFoundError(absl::StrCat("there is no run ", id.ToString()));
  absl::StatusOr<core::Run> run = ReadRun(select, 0, &statements_->select_nodes);
  select.Rewind();
  return run;
}

absl::StatusOr<core::ClosedSubmission> Store::LoadClosed(core::SubmissionId id) {
  Stmt& select = statements_->select_submission;
  RETURN_IF_ERROR(select.Bind(id.number));
  ASSIGN_OR_RETURN(const bool is_row, select.Step());
  if (!is_row) return absl::NotFoundError(absl::StrCat("there is no submission ", id.ToString()));
  absl::StatusOr<core::Submission> submission = DecodeSubmission(select.Text(0));
  select.Rewind();
  RETURN_IF_ERROR(submission.status());
  core::ClosedSubmission closed{.submission = *std::move(submission)};
  for (const core::RunId run : closed.submission.runs) {
    ASSIGN_OR_RETURN(closed.runs.emplace_back(), LoadRun(run));
  }
  return closed;
}

absl::StatusOr<core::State> Store::Load() {
  Db* db = &statements_->db;
  core::State state;
  ASSIGN_OR_RETURN(state.last_seq, db->QueryInt("SELECT COALESCE(MAX(seq), 0) FROM events"));
  RETURN_IF_ERROR(ForEachRow(db, kSelectCounters, [&](const Stmt& stmt) {
    if (stmt.Text(0) == "last_submission") state.last_submission = stmt.Int(1);
    if (stmt.Text(0) == "last_run") state.last_run = stmt.Int(1);
    if (stmt.Text(0) == "last_token") state.last_token = stmt.Int(1);
    if (stmt.Text(0) == "last_allocation") state.last_allocation = stmt.Int(1);
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(ForEachRow(db, kSelectSubmissions,
                             [&](const Stmt& stmt) { return DecodeInto(stmt, &state); }));
  Stmt& select_runs = statements_->select_runs_of;
  for (const auto& [id, submission] : state.submissions) {
    RETURN_IF_ERROR(select_runs.Bind(id.number));
    while (true) {
      ASSIGN_OR_RETURN(const bool is_row, select_runs.Step());
      if (!is_row) break;
      ASSIGN_OR_RETURN(core::Run run, ReadRun(select_runs, 0, &statements_->select_nodes));
      const core::RunId run_id = run.id;
      state.runs.emplace(run_id, std::move(run));
    }
  }
  RETURN_IF_ERROR(ForEachRow(db, kSelectWorkers, [&](const Stmt& stmt) {
    ASSIGN_OR_RETURN(core::Worker worker, DecodeWorker(stmt.Text(0)));
    state.workers[worker.name] = worker;
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(ForEachRow(db, kSelectAllocations, [&](const Stmt& stmt) {
    ASSIGN_OR_RETURN(core::Allocation allocation, DecodeAllocation(stmt.Text(0)));
    state.allocations[allocation.id] = std::move(allocation);
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(ForEachRow(db, kSelectDatasets, [&](const Stmt& stmt) {
    ASSIGN_OR_RETURN(core::Dataset dataset, DecodeDataset(stmt.Text(0)));
    state.datasets[dataset.id] = dataset;
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(ForEachRow(db, kSelectViews, [&](const Stmt& stmt) {
    ASSIGN_OR_RETURN(core::View view, DecodeView(stmt.Text(0)));
    state.views[view.key()] = std::move(view);
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(ForEachRow(db, kSelectTokens, [&](const Stmt& stmt) {
    ASSIGN_OR_RETURN(const core::Token token, DecodeToken(stmt.Text(0)));
    state.tokens[token.id] = token;
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(ForEachRow(db, kSelectRequests, [&](const Stmt& stmt) {
    const auto text = [&stmt](int column) { return std::string(stmt.Text(column)); };
    state.requests[{{text(0), text(1)}, text(2), text(3)}] = {text(4), stmt.Int(5)};
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(ForEachRow(db, kSelectImports, [&](const Stmt& stmt) {
    state.imports[{std::string(stmt.Text(0)), std::string(stmt.Text(1))}] = {stmt.Int(2)};
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(ForEachRow(db, kSelectBorrowings, [&](const Stmt& stmt) {
    state.borrowings[{stmt.Int(0)}] = {stmt.Int(1)};
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(ForEachRow(db, kSelectRates, [&](const Stmt& stmt) {
    const core::RateKey key{std::string(stmt.Text(0)), std::string(stmt.Text(1))};
    ASSIGN_OR_RETURN(state.rates[key], DecodeRates(stmt.Text(2)));
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(ForEachRow(db, kSelectPassed, [&](const Stmt& stmt) {
    const core::PassedKey key{{stmt.Int(0)}, std::string(stmt.Text(1))};
    ASSIGN_OR_RETURN(state.passed[key], DecodePreflight(stmt.Text(2)));
    return absl::OkStatus();
  }));
  for (const auto& [id, submission] : state.submissions) {
    for (const core::RunId run : submission.runs) {
      if (state.runs.count(run) == 0)
        return absl::DataLossError(
            absl::StrCat("submission ", id.ToString(), " has no row of run ", run.ToString()));
    }
  }
  core::Index(&state);
  return state;
}

absl::StatusOr<Store::RulePacks> Store::LoadRulePacks() {
  return PacksIn(&statements_->db);
}

absl::StatusOr<Store::RulePacks> Store::ReadRulePacks(const std::string& path) {
  ASSIGN_OR_RETURN(Db db, Db::Open(path, OpenMode::kReadOnly));
  return PacksIn(&db);
}

absl::Status Store::KeepRulePacks(const RulePacks& packs) {
  ASSIGN_OR_RETURN(const RulePacks kept, LoadRulePacks());
  ASSIGN_OR_RETURN(Stmt insert, statements_->db.Prepare(kInsertPack));
  for (const auto& [digest, pack] : packs)
    if (kept.count(digest) == 0) RETURN_IF_ERROR(insert.Run(digest, pack));
  return absl::OkStatus();
}

}  // namespace assay::store
