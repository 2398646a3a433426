#include "server/store/store_statements.h"

#include <utility>

#include "common/status.h"
#include "server/store/rows.h"

namespace assay::store {
namespace {

constexpr char kInsertEvent[] =
    "INSERT INTO events (seq, at_us, type, version, principal, submission_id, run_id, is_change, "
    "body, lines, chain) "
    "VALUES (?1, ?2, ?3, ?4, ?5, NULLIF(?6, 0), NULLIF(?7, 0), ?8, ?9, ?10, ?11)";
constexpr char kInsertRunEvent[] =
    "INSERT INTO run_events (run_id, ordinal, node_rank, seq, kind, line, text, wall_us, mono_ns, "
    "receive_us, finding, is_late, is_attributed) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, NULLIF(?11, ''), ?12, ?13)";
constexpr char kUpsertSubmission[] =
    "INSERT INTO submissions (id, state, organization, system, benchmark, division, round, "
    "created_at_us, ended_at_us, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) "
    "ON CONFLICT (id) DO UPDATE SET state = excluded.state, ended_at_us = excluded.ended_at_us, "
    "body = excluded.body";
constexpr char kUpsertDisclosure[] =
    "INSERT INTO disclosures (submission_id, organization, published_at_us) VALUES (?1, ?2, ?3) "
    "ON CONFLICT (submission_id) DO UPDATE SET published_at_us = excluded.published_at_us";
constexpr char kUpsertRun[] =
    "INSERT INTO runs (id, submission_id, number, state, organization, body) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6) "
    "ON CONFLICT (id) DO UPDATE SET state = excluded.state, body = excluded.body";
constexpr char kUpsertNode[] =
    "INSERT INTO run_nodes (run_id, node_rank, worker, phase, exit_code, reason, is_lost, "
    "is_released, last_seq, clock_offset_us, clock_offset_uncertainty_us, first_touch_us, "
    "observed_touch_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) "
    "ON CONFLICT (run_id, node_rank) DO UPDATE SET worker = excluded.worker, "
    "phase = excluded.phase, exit_code = excluded.exit_code, reason = excluded.reason, "
    "is_lost = excluded.is_lost, is_released = excluded.is_released, "
    "last_seq = excluded.last_seq, clock_offset_us = excluded.clock_offset_us, "
    "clock_offset_uncertainty_us = excluded.clock_offset_uncertainty_us, "
    "first_touch_us = excluded.first_touch_us, observed_touch_us = excluded.observed_touch_us";
constexpr char kInsertArtifact[] =
    "INSERT INTO artifacts (run_id, file_name, sha256, size_bytes, is_late) "
    "VALUES (?1, ?2, ?3, ?4, ?5)";
constexpr char kUpsertAllocation[] =
    "INSERT INTO allocations (id, state, body) VALUES (?1, ?2, ?3) "
    "ON CONFLICT (id) DO UPDATE SET state = excluded.state, body = excluded.body";
constexpr char kUpsertWorker[] =
    "INSERT INTO workers (name, state, run_id, allocation_id, is_forgotten, body) "
    "VALUES (?1, ?2, NULLIF(?3, 0), NULLIF(?4, 0), ?5, ?6) "
    "ON CONFLICT (name) DO UPDATE SET state = excluded.state, run_id = excluded.run_id, "
    "allocation_id = excluded.allocation_id, is_forgotten = excluded.is_forgotten, "
    "body = excluded.body";
constexpr char kUpsertDataset[] =
    "INSERT INTO datasets (id, body) VALUES (?1, ?2) "
    "ON CONFLICT (id) DO UPDATE SET body = excluded.body";
constexpr char kDeleteDataset[] = "DELETE FROM datasets WHERE id = ?1";
constexpr char kUpsertView[] =
    "INSERT INTO views (role, organization, author, name, is_shared, body) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (role, organization, author, name) "
    "DO UPDATE SET is_shared = excluded.is_shared, body = excluded.body";
constexpr char kDeleteView[] =
    "DELETE FROM views WHERE (role, organization, author, name) = (?1, ?2, ?3, ?4)";
constexpr char kUpsertToken[] =
    "INSERT INTO tokens (id, secret_sha256, is_forgotten, body) VALUES (?1, ?2, ?3, ?4) "
    "ON CONFLICT (id) DO UPDATE SET is_forgotten = excluded.is_forgotten, body = excluded.body";
constexpr char kInsertRequest[] =
    "INSERT INTO requests (role, organization, principal, request_id, made, at_us) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
constexpr char kDeleteRequest[] =
    "DELETE FROM requests WHERE (role, organization, principal, request_id) = (?1, ?2, ?3, ?4)";
constexpr char kInsertImport[] =
    "INSERT INTO imports (round, source_path, submission_id) VALUES (?1, ?2, ?3)";
constexpr char kInsertBorrowing[] =
    "INSERT INTO borrowings (own_id, submission_id) VALUES (?1, ?2)";
constexpr char kDeleteBorrowing[] = "DELETE FROM borrowings WHERE own_id = ?1";
constexpr char kUpsertRates[] =
    "INSERT INTO node_rates (node_type, check_name, body) VALUES (?1, ?2, ?3) "
    "ON CONFLICT (node_type, check_name) DO UPDATE SET body = excluded.body";
constexpr char kUpsertPassed[] =
    "INSERT INTO passed_preflights (submission_id, node, body) VALUES (?1, ?2, ?3) "
    "ON CONFLICT (submission_id, node) DO UPDATE SET body = excluded.body";
constexpr char kDeletePassed[] = "DELETE FROM passed_preflights WHERE submission_id = ?1";
constexpr char kUpsertCounter[] =
    "INSERT INTO counters (name, value) VALUES (?1, ?2) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value";

constexpr char kSelectSubmission[] = "SELECT body FROM submissions WHERE id = ?1";
constexpr char kSelectRun[] = "SELECT body FROM runs WHERE id = ?1";
constexpr char kSelectRunsOf[] = "SELECT body FROM runs WHERE submission_id = ?1 ORDER BY number";

}  // namespace

absl::Status Store::Statements::Prepare() {
  const std::pair<Stmt*, const char*> all[] = {
      {&insert_event, kInsertEvent},
      {&insert_run_event, kInsertRunEvent},
      {&upsert_submission, kUpsertSubmission},
      {&upsert_disclosure, kUpsertDisclosure},
      {&upsert_run, kUpsertRun},
      {&upsert_node, kUpsertNode},
      {&insert_artifact, kInsertArtifact},
      {&upsert_allocation, kUpsertAllocation},
      {&upsert_worker, kUpsertWorker},
      {&upsert_dataset, kUpsertDataset},
      {&delete_dataset, kDeleteDataset},
      {&upsert_view, kUpsertView},
      {&delete_view, kDeleteView},
      {&upsert_token, kUpsertToken},
      {&insert_request, kInsertRequest},
      {&delete_request, kDeleteRequest},
      {&insert_import, kInsertImport},
      {&insert_borrowing, kInsertBorrowing},
      {&delete_borrowing, kDeleteBorrowing},
      {&upsert_rates, kUpsertRates},
      {&upsert_passed, kUpsertPassed},
      {&delete_passed, kDeletePassed},
      {&upsert_counter, kUpsertCounter},
      {&select_submission, kSelectSubmission},
      {&select_run, kSelectRun},
      {&select_runs_of, kSelectRunsOf},
      {&select_nodes, kSelectNodes},
  };
  for (const auto& [stmt, sql] : all) {
    ASSIGN_OR_RETURN(*stmt, db.Prepare(sql));
  }
  return facts.Prepare(&db);
}

}  // namespace assay::store
