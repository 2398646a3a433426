#include "server/store/reader.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/store/audit.h"
#include "server/store/codec.h"
#include "server/store/reader_sql.h"
#include "server/store/rows.h"
#include "server/store/sqlite.h"

namespace assay::store {
namespace {

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

// Whose submission the row in columns `column` and the next is of.
core::Disclosure ReadDisclosure(const Stmt& stmt, int column) {
  return {.organization = std::string(stmt.Text(column)), .published_at_us = stmt.Int(column + 1)};
}

// Who may see what the row of `number` is.
absl::StatusOr<core::Disclosure> DisclosureIn(Stmt* stmt, int64_t number, absl::string_view kind,
                                              const std::string& id) {
  RETURN_IF_ERROR(stmt->Bind(number));
  ASSIGN_OR_RETURN(const bool is_row, stmt->Step());
  if (!is_row) return NotFound(kind, id);
  core::Disclosure disclosure = ReadDisclosure(*stmt, 0);
  stmt->Rewind();
  return disclosure;
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
  row.sight = core::Sight::kWhole;  // unless it was read for somebody
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
      list_by_state, list_by_benchmark, get_run, runs_of, runs_by_nothing, runs_by_state,
      select_nodes, last_seq, events_of_all, events_of_submission, seen_events, run_events,
      findings, list_views, list_datasets, get_dataset, list_tokens, get_worker, get_allocation,
      list_allocations, workers_of_allocation, get_artifact, get_borrower, disclosure_of_submission,
      disclosure_of_run, count_submissions;

  std::vector<std::pair<Stmt*, std::string>> All() {
    return {
        {&get_submission, kGetSubmission},
        {&list_by_nothing, ListSql(ListKey::kNothing)},
        {&list_by_system, ListSql(ListKey::kFact, "system")},
        {&list_by_organization, ListSql(ListKey::kFact, "organization")},
        {&list_by_round, ListSql(ListKey::kFact, "round")},
        {&list_by_state, ListSql(ListKey::kState)},
        {&list_by_benchmark, ListSql(ListKey::kFact, "benchmark")},
        {&get_run, kGetRun},
        {&runs_of, RunsOfSql()},
        {&runs_by_nothing, RunsSql(/*is_by_state=*/false)},
        {&runs_by_state, RunsSql(/*is_by_state=*/true)},
        {&select_nodes, kSelectNodes},
        {&last_seq, kLastSeq},
        {&events_of_all, kEventsOfAll},
        {&events_of_submission, SeenEventsSql(/*is_of_submission=*/true)},
        {&seen_events, SeenEventsSql(/*is_of_submission=*/false)},
        {&run_events, kRunEvents},
        {&findings, kFindings},
        {&list_views, kListViews},
        {&list_datasets, kListDatasets},
        {&get_dataset, kGetDataset},
        {&list_tokens, kListTokens},
        {&get_worker, kGetWorker},
        {&get_allocation, kGetAllocation},
        {&list_allocations, kListAllocations},
        {&workers_of_allocation, kWorkersOfAllocation},
        {&get_artifact, ArtifactSql()},
        {&get_borrower, kGetBorrower},
        {&disclosure_of_submission, kDisclosureOfSubmission},
        {&disclosure_of_run, kDisclosureOfRun},
        {&count_submissions, CountSql()},
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

absl::StatusOr<core::Disclosure> Reader::DisclosureOf(core::SubmissionId id) {
  return DisclosureIn(&statements_->disclosure_of_submission, id.number, "submission",
                      id.ToString());
}

absl::StatusOr<core::Disclosure> Reader::DisclosureOf(core::RunId id) {
  return DisclosureIn(&statements_->disclosure_of_run, id.number, "run", id.ToString());
}

absl::StatusOr<int64_t> Reader::CountSubmissions(const core::VisibleTo& viewer) {
  Stmt& stmt = statements_->count_submissions;
  const VisibleParameters seen(viewer);
  RETURN_IF_ERROR(stmt.Bind(seen.sees_all, seen.organization, seen.published_until_us));
  RETURN_IF_ERROR(stmt.Step().status());
  const int64_t count = stmt.Int(0);
  stmt.Rewind();
  return count;
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
  const VisibleParameters seen(filter.viewer);
  const std::string state(filter.state.has_value() ? ToString(*filter.state) : "");
  RETURN_IF_ERROR(stmt->Bind(key, filter.organization, filter.system, filter.benchmark,
                             filter.division, filter.round, state, parsed.bound, parsed.size + 1,
                             seen.sees_all, seen.organization, seen.published_until_us));
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

absl::StatusOr<core::Page<core::SeenRun>> Reader::ListRuns(const core::RunFilter& filter,
                                                           const core::PageRequest& page) {
  const std::string state(filter.state.has_value() ? ToString(*filter.state) : "");
  const VisibleParameters seen(filter.viewer);
  const auto read = [this, &filter](const Stmt& row) -> absl::StatusOr<core::SeenRun> {
    ASSIGN_OR_RETURN(core::Run run, ReadRun(row, 1, &statements_->select_nodes));
    return core::SeenRun{std::move(run), core::SightOf(filter.viewer, ReadDisclosure(row, 2))};
  };
  if (!filter.submission.is_none()) {
    ASSIGN_OR_RETURN(const ParsedPage parsed, ParsePage(page, 0));
    Stmt* stmt = &statements_->runs_of;
    RETURN_IF_ERROR(stmt->Bind(filter.submission.number, parsed.bound, state, parsed.size + 1,
                               seen.sees_all, seen.organization, seen.published_until_us));
    ASSIGN_OR_RETURN(std::vector<core::SeenRun> items, ReadAll<core::SeenRun>(stmt, read));
    return ToPage(std::move(items), parsed.size,
                  [](const core::SeenRun& seen_run) { return seen_run.run.number; });
  }
  ASSIGN_OR_RETURN(const ParsedPage parsed, ParsePage(page, std::numeric_limits<int64_t>::max()));
  Stmt* stmt = state.empty() ? &statements_->runs_by_nothing : &statements_->runs_by_state;
  RETURN_IF_ERROR(stmt->Bind(parsed.bound, state, parsed.size + 1, seen.sees_all, seen.organization,
                             seen.published_until_us));
  ASSIGN_OR_RETURN(std::vector<core::SeenRun> items, ReadAll<core::SeenRun>(stmt, read));
  return ToPage(std::move(items), parsed.size,
                [](const core::SeenRun& seen_run) { return seen_run.run.id.number; });
}

absl::StatusOr<std::vector<core::Run>> Reader::RunsOf(core::SubmissionId id) {
  Stmt* stmt = &statements_->runs_of;
  // Replacements included, a submission has fewer runs than this.
  constexpr int32_t kRunsMax = 10000;
  RETURN_IF_ERROR(stmt->Bind(id.number, 0, absl::string_view(), kRunsMax, /*sees_all=*/true,
                             absl::string_view(), 0));
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

absl::StatusOr<std::vector<core::EventRow>> Reader::EventsAfter(const core::VisibleTo& viewer,
                                                                core::SubmissionId submission,
                                                                int64_t after_seq, int32_t limit) {
  if (submission.is_none() && viewer.sees_all) {
    RETURN_IF_ERROR(statements_->events_of_all.Bind(after_seq, BoundedLimit(limit)));
    return ReadLog<core::EventRow>(&statements_->events_of_all, ReadEventRow);
  }
  Stmt* stmt =
      submission.is_none() ? &statements_->seen_events : &statements_->events_of_submission;
  const VisibleParameters seen(viewer);
  RETURN_IF_ERROR(stmt->Bind(after_seq, BoundedLimit(limit), submission.number, seen.sees_all,
                             seen.organization, seen.published_until_us));
  return ReadLog<core::EventRow>(stmt,
                                 [&viewer](const Stmt& row) -> absl::StatusOr<core::EventRow> {
                                   ASSIGN_OR_RETURN(core::EventRow event, ReadEventRow(row));
                                   event.sight = core::SightOf(viewer, ReadDisclosure(row, 8));
                                   return event;
                                 });
}

absl::StatusOr<std::vector<core::AuditRow>> Reader::Audit(const core::AuditQuestion& question) {
  const SqlQuestion sql = AuditSql(question, BoundedLimit(question.limit));
  ASSIGN_OR_RETURN(Stmt stmt, statements_->db.Prepare(sql.sql));
  RETURN_IF_ERROR(stmt.BindValues(sql.values));
  return ReadLog<core::AuditRow>(&stmt, [](const Stmt& row) -> absl::StatusOr<core::AuditRow> {
    ASSIGN_OR_RETURN(core::EventRow event, ReadEventRow(row));
    return core::AuditRow{std::move(event), std::string(row.Text(8)), std::string(row.Text(9))};
  });
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

absl::StatusOr<std::vector<core::View>> Reader::ListViews(const core::Standing& standing,
                                                          const std::string& principal) {
  Stmt* const stmt = &statements_->list_views;
  RETURN_IF_ERROR(stmt->Bind(standing.role, standing.organization, principal));
  ASSIGN_OR_RETURN(std::vector<core::View> views, ReadAll<core::View>(stmt, [](const Stmt& row) {
                     return DecodeView(row.Text(0));
                   }));
  std::sort(views.begin(), views.end(), [](const core::View& a, const core::View& b) {
    return std::tie(a.name, a.author) < std::tie(b.name, b.author);
  });
  return views;
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

absl::StatusOr<bool> Reader::IsSeen(const core::VisibleTo& viewer,
                                    const core::Allocation& allocation) {
  if (viewer.sees_all || allocation.spec.submission.is_none()) return true;
  const absl::StatusOr<core::Disclosure> disclosure = DisclosureOf(allocation.spec.submission);
  if (absl::IsNotFound(disclosure.status())) return false;
  if (!disclosure.ok()) return disclosure.status();
  return core::SightOf(viewer, *disclosure) == core::Sight::kWhole;
}

absl::StatusOr<core::Allocation> Reader::GetAllocation(const core::VisibleTo& viewer,
                                                       core::AllocationId id) {
  ASSIGN_OR_RETURN(core::Allocation allocation,
                   ReadOne(&statements_->get_allocation, id.number, "allocation", id.ToString(),
                           DecodeAllocation));
  ASSIGN_OR_RETURN(const bool is_seen, IsSeen(viewer, allocation));
  if (!is_seen) return NotFound("allocation", id.ToString());
  RETURN_IF_ERROR(FillWorkers(&allocation));
  return allocation;
}

absl::StatusOr<core::Page<core::Allocation>> Reader::ListAllocations(
    const core::VisibleTo& viewer, const core::PageRequest& page) {
  ASSIGN_OR_RETURN(const ParsedPage parsed, ParsePage(page, std::numeric_limits<int64_t>::max()));
  Stmt* const stmt = &statements_->list_allocations;
  RETURN_IF_ERROR(stmt->Bind(parsed.bound, parsed.size + 1));
  ASSIGN_OR_RETURN(std::vector<core::Allocation> items,
                   ReadAll<core::Allocation>(
                       stmt, [](const Stmt& row) { return DecodeAllocation(row.Text(1)); }));
  core::Page<core::Allocation> result =
      ToPage(std::move(items), parsed.size,
             [](const core::Allocation& allocation) { return allocation.id.number; });
  std::vector<core::Allocation> all = std::exchange(result.items, {});
  for (core::Allocation& allocation : all) {
    ASSIGN_OR_RETURN(const bool is_seen, IsSeen(viewer, allocation));
    if (!is_seen) continue;
    RETURN_IF_ERROR(FillWorkers(&allocation));
    result.items.push_back(std::move(allocation));
  }
  return result;
}

absl::StatusOr<core::ArtifactInfo> Reader::GetArtifact(const core::VisibleTo& viewer,
                                                       const std::string& sha256) {
  Stmt& stmt = statements_->get_artifact;
  const VisibleParameters seen(viewer);
  RETURN_IF_ERROR(stmt.Bind(sha256, seen.sees_all, seen.organization, seen.published_until_us));
  while (true) {
    ASSIGN_OR_RETURN(const bool is_row, stmt.Step());
    if (!is_row) return NotFound("artifact", sha256);
    const core::Sight sight = core::SightOf(viewer, ReadDisclosure(stmt, 4));
    if (!core::IsShownFile(sight, stmt.Text(0))) continue;
    core::ArtifactInfo info;
    info.artifact.file_name = std::string(stmt.Text(0));
    info.artifact.sha256 = sha256;
    info.artifact.size_bytes = stmt.Int(1);
    info.run.number = stmt.Int(2);
    info.submission.number = stmt.Int(3);
    info.organization = std::string(stmt.Text(4));
    info.sight = sight;
    stmt.Rewind();
    return info;
  }
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
