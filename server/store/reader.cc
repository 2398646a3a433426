#include "server/store/reader.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/store/codec.h"
#include "server/store/rows.h"
#include "server/store/sqlite.h"

namespace assay::store {
namespace {

constexpr char kGetSubmission[] = "SELECT body FROM submissions WHERE id = ?1";

// Submissions by the most selective filter that is given; the others are compared row by row. The
// names in the unary plus are hidden from the planner, so that it takes the index we mean.
constexpr char kListByNothing[] = "SELECT id, body FROM submissions WHERE ?1 = '' ";
constexpr char kListBySystem[] = "SELECT id, body FROM submissions WHERE system = ?1 ";
constexpr char kListByOrganization[] = "SELECT id, body FROM submissions WHERE organization = ?1 ";
constexpr char kListByRound[] = "SELECT id, body FROM submissions WHERE round = ?1 ";
constexpr char kListByState[] = "SELECT id, body FROM submissions WHERE state = ?1 ";
constexpr char kListByBenchmark[] = "SELECT id, body FROM submissions WHERE benchmark = ?1 ";
constexpr char kListTail[] =
    "AND (?2 = '' OR +organization = ?2) AND (?3 = '' OR +system = ?3) "
    "AND (?4 = '' OR +benchmark = ?4) AND (?5 = '' OR +division = ?5) "
    "AND (?6 = '' OR +round = ?6) AND (?7 = '' OR +state = ?7) "
    "AND id < ?8 ORDER BY id DESC LIMIT ?9";

constexpr char kOrganizationOfSubmission[] = "SELECT organization FROM submissions WHERE id = ?1";
constexpr char kOrganizationOfRun[] = "SELECT organization FROM runs WHERE id = ?1";
constexpr char kGetRun[] = "SELECT body FROM runs WHERE id = ?1";
constexpr char kRunsOf[] =
    "SELECT number, body FROM runs WHERE submission_id = ?1 AND number > ?2 "
    "AND (?3 = '' OR +state = ?3) ORDER BY number LIMIT ?4";
constexpr char kRunsByNothing[] =
    "SELECT id, body FROM runs WHERE id < ?1 AND ?2 = '' AND ?3 = '' ORDER BY id DESC LIMIT ?4";
constexpr char kRunsByOrganization[] =
    "SELECT id, body FROM runs WHERE organization = ?2 AND id < ?1 "
    "AND (?3 = '' OR +state = ?3) ORDER BY id DESC LIMIT ?4";
constexpr char kRunsByState[] =
    "SELECT id, body FROM runs WHERE state = ?3 AND id < ?1 AND ?2 = '' ORDER BY id DESC LIMIT ?4";

constexpr char kLastSeq[] = "SELECT COALESCE(MAX(seq), 0) FROM events";
constexpr char kEventsOfAll[] =
    "SELECT seq, at_us, type, version, principal, submission_id, run_id, body FROM events "
    "WHERE seq > ?1 ORDER BY seq LIMIT ?2";
constexpr char kEventsOfSubmission[] =
    "SELECT seq, at_us, type, version, principal, submission_id, run_id, body FROM events "
    "WHERE submission_id = ?3 AND seq > ?1 ORDER BY seq LIMIT ?2";
// CROSS JOIN: along the log, so that its order needs no sorting.
constexpr char kEventsOfOrganization[] =
    "SELECT e.seq, e.at_us, e.type, e.version, e.principal, e.submission_id, e.run_id, e.body "
    "FROM events e CROSS JOIN submissions s ON s.id = e.submission_id "
    "WHERE s.organization = ?3 AND e.seq > ?1 ORDER BY e.seq LIMIT ?2";
constexpr char kEventsOfChanges[] =
    "SELECT seq, at_us, type, version, principal, submission_id, run_id, body FROM events "
    "WHERE is_change = 1 AND seq > ?1 ORDER BY seq LIMIT ?2";

// A node's seq is never greater than the event's ordinal, so both bounds hold for one node.
constexpr char kRunEvents[] =
    "SELECT ordinal, node_rank, seq, kind, line, text, wall_us, mono_ns, receive_us, finding, "
    "is_late, is_attributed FROM run_events WHERE run_id = ?1 AND ordinal > ?2 AND (?3 < 0 OR "
    "(node_rank = ?3 AND "
    "seq > ?2)) ORDER BY ordinal LIMIT ?4";

constexpr char kFindings[] =
    "SELECT finding FROM run_events WHERE run_id = ?1 AND LENGTH(finding) <= 4096 AND is_late = 0 "
    "ORDER BY ordinal LIMIT ?2";

constexpr char kListDatasets[] = "SELECT body FROM datasets ORDER BY id LIMIT 10000";
constexpr char kGetDataset[] = "SELECT body FROM datasets WHERE id = ?1";
constexpr char kGetWorker[] = "SELECT body FROM workers WHERE name = ?1";
constexpr char kGetAllocation[] = "SELECT body FROM allocations WHERE id = ?1";
constexpr char kListAllocations[] =
    "SELECT id, body FROM allocations WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
constexpr char kWorkersOfAllocation[] =
    "SELECT name FROM workers WHERE allocation_id = ?1 ORDER BY name LIMIT 100000";
constexpr char kListTokens[] = "SELECT body FROM tokens ORDER BY id LIMIT 100000";
constexpr char kGetBorrower[] = "SELECT submission_id FROM borrowings WHERE own_id = ?1";
constexpr char kGetArtifact[] =
    "SELECT artifacts.file_name, artifacts.size_bytes, runs.id, runs.submission_id, "
    "runs.organization FROM artifacts JOIN runs ON runs.id = artifacts.run_id "
    "WHERE artifacts.sha256 = ?1 ORDER BY artifacts.id LIMIT 1";

struct ParsedPage {
  int64_t bound;  // id or number of the last item of the page before
  int32_t size;
};

absl::StatusOr<ParsedPage> ParsePage(const core::PageRequest& page, int64_t start) {
  ParsedPage parsed{
      start, page.size <= 0 ? core::kPageSizeDefault : std::min(page.size, core::kPageSizeMax)};
  if (!page.token.empty() && (!absl::SimpleAtoi(page.token, &parsed.bound) || parsed.bound < 1))
    return absl::InvalidArgumentError(absl::StrCat(
        "page_token \"", page.token, "\" is none; leave it empty, or take next_page_token"));
  return parsed;
}

absl::Status NotFound(absl::string_view kind, absl::string_view id) {
  return absl::NotFoundError(absl::StrCat("there is no ", kind, " ", id));
}

// The text in the row whose key is `number`.
absl::StatusOr<std::string> TextOf(Stmt* stmt, int64_t number, absl::string_view kind,
                                   absl::string_view id) {
  RETURN_IF_ERROR(stmt->Bind(number));
  ASSIGN_OR_RETURN(const bool is_row, stmt->Step());
  if (!is_row) return NotFound(kind, id);
  std::string text(stmt->Text(0));
  stmt->Rewind();
  return text;
}

// Reads rows of a bound statement until its end, or until `is_enough` of what was read.
template <typename T, typename Read, typename IsEnough>
absl::StatusOr<std::vector<T>> ReadUntil(Stmt* stmt, Read read, IsEnough is_enough) {
  std::vector<T> items;
  while (true) {
    if (!items.empty() && is_enough(items.back())) {
      stmt->Rewind();
      return items;
    }
    absl::StatusOr<bool> is_row = stmt->Step();
    if (!is_row.ok()) return is_row.status();
    if (!*is_row) return items;
    absl::StatusOr<T> item = read(*stmt);
    if (!item.ok()) {
      stmt->Rewind();
      return item.status();
    }
    items.push_back(*std::move(item));
  }
}

template <typename T, typename Read>
absl::StatusOr<std::vector<T>> ReadAll(Stmt* stmt, Read read) {
  return ReadUntil<T>(stmt, read, [](const T&) { return false; });
}

// Of a log: others wait meanwhile, so a read ends also when it has enough bytes.
template <typename T, typename Read>
absl::StatusOr<std::vector<T>> ReadLog(Stmt* stmt, Read read) {
  size_t bytes = 0;
  return ReadUntil<T>(stmt, read, [&bytes](const T& last) {
    return (bytes += core::LogBytes(last)) >= core::kLogReadBytesMax;
  });
}

// The one row of `key`, or NOT_FOUND with `id`.
template <typename Key, typename Decode>
auto ReadOne(Stmt* stmt, const Key& key, absl::string_view what, const std::string& id,
             Decode decode) -> decltype(decode("")) {
  RETURN_IF_ERROR(stmt->Bind(key));
  ASSIGN_OR_RETURN(const bool is_row, stmt->Step());
  if (!is_row) return NotFound(what, id);
  auto value = decode(stmt->Text(0));
  stmt->Rewind();
  return value;
}

// One item more than asked for tells whether there is a next page.
template <typename T, typename KeyOf>
core::Page<T> ToPage(std::vector<T> items, int32_t size, KeyOf key_of) {
  core::Page<T> page{std::move(items), ""};
  if (page.items.size() > static_cast<size_t>(size)) {
    page.items.resize(static_cast<size_t>(size));
    page.next_page_token = absl::StrCat(key_of(page.items.back()));
  }
  return page;
}

absl::StatusOr<core::EventRow> ReadEventRow(const Stmt& stmt) {
  core::EventRow row;
  row.seq = stmt.Int(0);
  row.at_us = stmt.Int(1);
  row.type = std::string(stmt.Text(2));
  row.version = static_cast<int32_t>(stmt.Int(3));
  row.principal = std::string(stmt.Text(4));
  row.submission.number = stmt.Int(5);
  row.run.number = stmt.Int(6);
  row.body_json = std::string(stmt.Text(7));
  return row;
}

absl::StatusOr<core::RunEvent> ReadRunEvent(const Stmt& stmt) {
  core::RunEvent event;
  event.order = stmt.Int(0);
  event.node_rank = static_cast<int32_t>(stmt.Int(1));
  event.seq = stmt.Int(2);
  event.kind = static_cast<core::RunEventKind>(stmt.Int(3));
  event.line = stmt.Int(4);
  event.text = std::string(stmt.Text(5));
  event.wall_us = stmt.Int(6);
  event.mono_ns = stmt.Int(7);
  event.receive_us = stmt.Int(8);
  if (!stmt.IsNull(9)) {
    ASSIGN_OR_RETURN(event.finding, DecodeFinding(stmt.Text(9)));
  }
  event.is_late = stmt.Int(10) != 0;
  event.is_attributed = stmt.Int(11) != 0;
  return event;
}

int32_t BoundedLimit(int32_t limit) {
  return std::clamp(limit, 1, core::kPageSizeMax);
}

}  // namespace

struct Reader::Statements {
  Db db;
  Stmt get_submission, list_by_nothing, list_by_system, list_by_organization, list_by_round,
      list_by_state, list_by_benchmark, get_run, runs_of, runs_by_nothing, runs_by_organization,
      runs_by_state, select_nodes, last_seq, events_of_all, events_of_submission,
      events_of_organization, events_of_changes, run_events, findings, list_datasets, get_dataset,
      list_tokens, get_worker, get_allocation, list_allocations, workers_of_allocation,
      get_artifact, get_borrower, organization_of_submission, organization_of_run;

  std::vector<std::pair<Stmt*, std::string>> All() {
    return {
        {&get_submission, kGetSubmission},
        {&list_by_nothing, absl::StrCat(kListByNothing, kListTail)},
        {&list_by_system, absl::StrCat(kListBySystem, kListTail)},
        {&list_by_organization, absl::StrCat(kListByOrganization, kListTail)},
        {&list_by_round, absl::StrCat(kListByRound, kListTail)},
        {&list_by_state, absl::StrCat(kListByState, kListTail)},
        {&list_by_benchmark, absl::StrCat(kListByBenchmark, kListTail)},
        {&get_run, kGetRun},
        {&runs_of, kRunsOf},
        {&runs_by_nothing, kRunsByNothing},
        {&runs_by_organization, kRunsByOrganization},
        {&runs_by_state, kRunsByState},
        {&select_nodes, kSelectNodes},
        {&last_seq, kLastSeq},
        {&events_of_all, kEventsOfAll},
        {&events_of_submission, kEventsOfSubmission},
        {&events_of_organization, kEventsOfOrganization},
        {&events_of_changes, kEventsOfChanges},
        {&run_events, kRunEvents},
        {&findings, kFindings},
        {&list_datasets, kListDatasets},
        {&get_dataset, kGetDataset},
        {&list_tokens, kListTokens},
        {&get_worker, kGetWorker},
        {&get_allocation, kGetAllocation},
        {&list_allocations, kListAllocations},
        {&workers_of_allocation, kWorkersOfAllocation},
        {&get_artifact, kGetArtifact},
        {&get_borrower, kGetBorrower},
        {&organization_of_submission, kOrganizationOfSubmission},
        {&organization_of_run, kOrganizationOfRun},
    };
  }

  // The statement for the most selective filter, and that filter's value.
  std::pair<Stmt*, std::string> ListBy(const core::SubmissionFilter& filter) {
    if (!filter.system.empty()) return {&list_by_system, filter.system};
    if (!filter.organization.empty()) return {&list_by_organization, filter.organization};
    if (!filter.round.empty()) return {&list_by_round, filter.round};
    if (filter.state.has_value()) return {&list_by_state, std::string(ToString(*filter.state))};
    if (!filter.benchmark.empty()) return {&list_by_benchmark, filter.benchmark};
    return {&list_by_nothing, ""};
  }
};

Reader::Reader(std::unique_ptr<Statements> statements) : statements_(std::move(statements)) {}
Reader::~Reader() = default;

absl::StatusOr<std::unique_ptr<Reader>> Reader::Open(const std::string& path) {
  auto statements = std::make_unique<Statements>();
  ASSIGN_OR_RETURN(statements->db, Db::Open(path, OpenMode::kReadOnly));
  for (const auto& [stmt, sql] : statements->All()) {
    ASSIGN_OR_RETURN(*stmt, statements->db.Prepare(sql));
  }
  return std::unique_ptr<Reader>(new Reader(std::move(statements)));
}

absl::StatusOr<core::Submission> Reader::GetSubmission(core::SubmissionId id) {
  return ReadOne(&statements_->get_submission, id.number, "submission", id.ToString(),
                 DecodeSubmission);
}

absl::StatusOr<std::string> Reader::OrganizationOf(core::SubmissionId id) {
  return TextOf(&statements_->organization_of_submission, id.number, "submission", id.ToString());
}

absl::StatusOr<std::string> Reader::OrganizationOf(core::RunId id) {
  return TextOf(&statements_->organization_of_run, id.number, "run", id.ToString());
}

absl::StatusOr<core::SubmissionId> Reader::BorrowerOf(core::SubmissionId own) {
  Stmt& stmt = statements_->get_borrower;
  RETURN_IF_ERROR(stmt.Bind(own.number));
  ASSIGN_OR_RETURN(const bool is_row, stmt.Step());
  if (!is_row) return core::SubmissionId{};
  const core::SubmissionId borrower{stmt.Int(0)};
  stmt.Rewind();
  return borrower;
}

absl::StatusOr<core::Page<core::Submission>> Reader::ListSubmissions(
    const core::SubmissionFilter& filter, const core::PageRequest& page) {
  ASSIGN_OR_RETURN(const ParsedPage parsed, ParsePage(page, std::numeric_limits<int64_t>::max()));
  const auto [stmt, key] = statements_->ListBy(filter);
  const std::string state(filter.state.has_value() ? ToString(*filter.state) : "");
  RETURN_IF_ERROR(stmt->Bind(key, filter.organization, filter.system, filter.benchmark,
                             filter.division, filter.round, state, parsed.bound, parsed.size + 1));
  ASSIGN_OR_RETURN(std::vector<core::Submission> items,
                   ReadAll<core::Submission>(
                       stmt, [](const Stmt& row) { return DecodeSubmission(row.Text(1)); }));
  return ToPage(std::move(items), parsed.size,
                [](const core::Submission& submission) { return submission.id.number; });
}

absl::StatusOr<core::Run> Reader::GetRun(core::RunId id) {
  Stmt& stmt = statements_->get_run;
  RETURN_IF_ERROR(stmt.Bind(id.number));
  ASSIGN_OR_RETURN(const bool is_row, stmt.Step());
  if (!is_row) return NotFound("run", id.ToString());
  absl::StatusOr<core::Run> run = ReadRun(stmt, 0, &statements_->select_nodes);
  stmt.Rewind();
  return run;
}

absl::StatusOr<core::Page<core::Run>> Reader::ListRuns(const core::RunFilter& filter,
                                                       const core::PageRequest& page) {
  const std::string state(filter.state.has_value() ? ToString(*filter.state) : "");
  const auto read = [this](const Stmt& row) { return ReadRun(row, 1, &statements_->select_nodes); };
  if (!filter.submission.is_none()) {
    ASSIGN_OR_RETURN(const ParsedPage parsed, ParsePage(page, 0));
    Stmt* stmt = &statements_->runs_of;
    RETURN_IF_ERROR(stmt->Bind(filter.submission.number, parsed.bound, state, parsed.size + 1));
    ASSIGN_OR_RETURN(std::vector<core::Run> items, ReadAll<core::Run>(stmt, read));
    return ToPage(std::move(items), parsed.size, [](const core::Run& run) { return run.number; });
  }
  ASSIGN_OR_RETURN(const ParsedPage parsed, ParsePage(page, std::numeric_limits<int64_t>::max()));
  Stmt* stmt = !filter.organization.empty() ? &statements_->runs_by_organization
               : !state.empty()             ? &statements_->runs_by_state
                                            : &statements_->runs_by_nothing;
  RETURN_IF_ERROR(stmt->Bind(parsed.bound, filter.organization, state, parsed.size + 1));
  ASSIGN_OR_RETURN(std::vector<core::Run> items, ReadAll<core::Run>(stmt, read));
  return ToPage(std::move(items), parsed.size, [](const core::Run& run) { return run.id.number; });
}

absl::StatusOr<std::vector<core::Run>> Reader::RunsOf(core::SubmissionId id) {
  Stmt* stmt = &statements_->runs_of;
  // Replacements included, a submission has fewer runs than this.
  constexpr int32_t kRunsMax = 10000;
  RETURN_IF_ERROR(stmt->Bind(id.number, 0, absl::string_view(), kRunsMax));
  return ReadAll<core::Run>(
      stmt, [this](const Stmt& row) { return ReadRun(row, 1, &statements_->select_nodes); });
}

absl::StatusOr<int64_t> Reader::LastSeq() {
  Stmt& stmt = statements_->last_seq;
  stmt.Rewind();
  RETURN_IF_ERROR(stmt.Step().status());
  const int64_t seq = stmt.Int(0);
  stmt.Rewind();
  return seq;
}

absl::StatusOr<std::vector<core::EventRow>> Reader::EventsAfter(core::SubmissionId submission,
                                                                int64_t after_seq, int32_t limit) {
  Stmt* stmt =
      submission.is_none() ? &statements_->events_of_all : &statements_->events_of_submission;
  if (submission.is_none()) {
    RETURN_IF_ERROR(stmt->Bind(after_seq, BoundedLimit(limit)));
  } else {
    RETURN_IF_ERROR(stmt->Bind(after_seq, BoundedLimit(limit), submission.number));
  }
  return ReadLog<core::EventRow>(stmt, ReadEventRow);
}

absl::StatusOr<std::vector<core::EventRow>> Reader::EventsOfOrganization(
    const std::string& organization, int64_t after_seq, int32_t limit) {
  Stmt* stmt = &statements_->events_of_organization;
  RETURN_IF_ERROR(stmt->Bind(after_seq, BoundedLimit(limit), organization));
  return ReadLog<core::EventRow>(stmt, ReadEventRow);
}

absl::StatusOr<std::vector<core::EventRow>> Reader::AuditAfter(int64_t after_seq, int32_t limit) {
  Stmt* stmt = &statements_->events_of_changes;
  RETURN_IF_ERROR(stmt->Bind(after_seq, BoundedLimit(limit)));
  return ReadAll<core::EventRow>(stmt, ReadEventRow);
}

absl::StatusOr<std::vector<core::RunEvent>> Reader::RunEventsAfter(core::RunId run,
                                                                   int32_t node_rank, int64_t after,
                                                                   int32_t limit) {
  Stmt* stmt = &statements_->run_events;
  RETURN_IF_ERROR(stmt->Bind(run.number, after, node_rank, BoundedLimit(limit)));
  return ReadLog<core::RunEvent>(stmt, ReadRunEvent);
}

absl::StatusOr<std::vector<core::Finding>> Reader::FindingsOf(core::RunId run, int32_t limit) {
  Stmt* stmt = &statements_->findings;
  RETURN_IF_ERROR(stmt->Bind(run.number, BoundedLimit(limit)));
  return ReadAll<core::Finding>(stmt, [](const Stmt& row) { return DecodeFinding(row.Text(0)); });
}

absl::StatusOr<std::vector<core::Dataset>> Reader::ListDatasets() {
  statements_->list_datasets.Rewind();
  return ReadAll<core::Dataset>(&statements_->list_datasets,
                                [](const Stmt& row) { return DecodeDataset(row.Text(0)); });
}

absl::StatusOr<core::Dataset> Reader::GetDataset(const std::string& id) {
  return ReadOne(&statements_->get_dataset, id, "dataset", id, DecodeDataset);
}

absl::StatusOr<std::vector<core::Token>> Reader::ListTokens() {
  statements_->list_tokens.Rewind();
  return ReadAll<core::Token>(&statements_->list_tokens,
                              [](const Stmt& row) { return DecodeToken(row.Text(0)); });
}

absl::StatusOr<core::Worker> Reader::GetWorker(const std::string& name) {
  return ReadOne(&statements_->get_worker, name, "worker", name, DecodeWorker);
}

absl::Status Reader::FillWorkers(core::Allocation* allocation) {
  if (allocation->spec.launcher != core::kAttachLauncher) return absl::OkStatus();
  Stmt& stmt = statements_->workers_of_allocation;
  RETURN_IF_ERROR(stmt.Bind(allocation->id.number));
  ASSIGN_OR_RETURN(allocation->workers, ReadAll<std::string>(&stmt, [](const Stmt& row) {
                     return absl::StatusOr<std::string>(row.Text(0));
                   }));
  return absl::OkStatus();
}

absl::StatusOr<core::Allocation> Reader::GetAllocation(core::AllocationId id) {
  absl::StatusOr<core::Allocation> allocation = ReadOne(
      &statements_->get_allocation, id.number, "allocation", id.ToString(), DecodeAllocation);
  if (allocation.ok()) RETURN_IF_ERROR(FillWorkers(&*allocation));
  return allocation;
}

absl::StatusOr<core::Page<core::Allocation>> Reader::ListAllocations(
    const core::PageRequest& page) {
  ASSIGN_OR_RETURN(const ParsedPage parsed, ParsePage(page, std::numeric_limits<int64_t>::max()));
  Stmt* const stmt = &statements_->list_allocations;
  RETURN_IF_ERROR(stmt->Bind(parsed.bound, parsed.size + 1));
  ASSIGN_OR_RETURN(std::vector<core::Allocation> items,
                   ReadAll<core::Allocation>(
                       stmt, [](const Stmt& row) { return DecodeAllocation(row.Text(1)); }));
  core::Page<core::Allocation> result =
      ToPage(std::move(items), parsed.size,
             [](const core::Allocation& allocation) { return allocation.id.number; });
  for (core::Allocation& allocation : result.items)
    RETURN_IF_ERROR(FillWorkers(&allocation));
  return result;
}

absl::StatusOr<core::ArtifactInfo> Reader::GetArtifact(const std::string& sha256) {
  Stmt& stmt = statements_->get_artifact;
  RETURN_IF_ERROR(stmt.Bind(sha256));
  ASSIGN_OR_RETURN(const bool is_row, stmt.Step());
  if (!is_row) return NotFound("artifact", sha256);
  core::ArtifactInfo info;
  info.artifact.file_name = std::string(stmt.Text(0));
  info.artifact.sha256 = sha256;
  info.artifact.size_bytes = stmt.Int(1);
  info.run.number = stmt.Int(2);
  info.submission.number = stmt.Int(3);
  info.organization = std::string(stmt.Text(4));
  stmt.Rewind();
  return info;
}

absl::StatusOr<std::vector<std::string>> Reader::ExplainPlans() {
  std::vector<std::string> lines;
  for (const auto& [unused, sql] : statements_->All()) {
    ASSIGN_OR_RETURN(Stmt stmt, statements_->db.Prepare(absl::StrCat("EXPLAIN QUERY PLAN ", sql)));
    while (true) {
      ASSIGN_OR_RETURN(const bool is_row, stmt.Step());
      if (!is_row) break;
      lines.push_back(absl::StrCat(stmt.Text(3), " <- ", sql));
    }
  }
  return lines;
}

}  // namespace assay::store
