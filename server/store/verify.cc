#include "server/store/verify.h"

#include <fcntl.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/status.h"
#include "server/core/event.h"
#include "server/core/id.h"
#include "server/store/artifacts.h"
#include "server/store/chain_rows.h"
#include "server/store/checked_vfs.h"
#include "server/store/codec.h"
#include "server/store/mark.h"
#include "server/store/migrate.h"
#include "server/store/page_names.h"
#include "server/store/prune.h"
#include "server/store/sqlite.h"
#include "server/store/store.h"
#include "server/store/wal_check.h"

namespace assay::store {
namespace {

constexpr char kDatabaseName[] = "assay.db";
constexpr char kWal[] = "assay.db-wal";
constexpr char kMarkName[] = "mark";

// What a step does: 4 MiB of pages, a page of events, a piece of an artifact.
constexpr int64_t kPagesOfStep = 1024;
constexpr int64_t kEventsOfStep = 1000;
constexpr int64_t kBytesOfStep = 16 << 20;
// A page that is written while it is read looks damaged until the write is over.
constexpr int kReadsOfPage = 100;
// Each is a walk through the whole database.
constexpr int kNamingsMax = 64;
constexpr int kIntegrityRowsMax = 100;

constexpr char kSelectMaxOrdinal[] =
    "SELECT COALESCE(MAX(ordinal), 0) FROM run_events WHERE run_id = ?1";
constexpr char kSelectNextRun[] =
    "SELECT run_id FROM run_events WHERE run_id > ?1 ORDER BY run_id LIMIT 1";
constexpr char kSelectArtifact[] =
    "SELECT sha256, MIN(id), run_id, file_name, size_bytes, COUNT(DISTINCT run_id) FROM artifacts "
    "WHERE sha256 > ?1 GROUP BY sha256 ORDER BY sha256 LIMIT 1";
constexpr char kCountEnded[] =
    "SELECT COUNT(*) FROM submissions WHERE state IN ('VALID', 'INVALID', 'CANCELLED')";
constexpr char kSelectLogIdentity[] = "SELECT identity FROM log_identity";

std::string RunName(int64_t run) {
  return core::RunId{run}.ToString();
}

}  // namespace

// In order; each phase is repeated until it moves on.
enum class Phase { kLog, kPages, kIntegrity, kEvents, kLines, kArtifacts, kMark, kVerdicts, kDone };

struct Verifier::Work {
  Work(const std::string& folder, std::unique_ptr<VerdictCheck> check)
      : copy{folder, kDatabaseName, {}, kMarkName}, verdicts(std::move(check)) {}
  Work(VerifiedCopy what, std::unique_ptr<VerdictCheck> check)
      : copy(std::move(what)), verdicts(std::move(check)), phase(Phase::kPages), mark(copy.mark) {}

  const VerifiedCopy copy;
  const std::string& directory = copy.directory;
  const std::string& database_name = copy.database_name;
  const std::string database = JoinPath(directory, database_name);
  const std::unique_ptr<VerdictCheck> verdicts;  // null: none
  Phase phase = Phase::kLog;
  core::VerifyCounts counts;
  std::vector<core::StoredFault> faults;  // of this step

  Mark mark;  // as it was at the beginning; seq 0 if there is none
  std::optional<Db> unchecked;
  std::optional<Db> db;
  int naming_count = 0;
  int64_t next_page = 0;

  int64_t last_seq = 0;
  std::string chain = ChainStart();
  std::string chain_at_mark;
  std::map<int64_t, int64_t> next_ordinals;  // by run
  int64_t last_run = 0;

  std::string last_sha256;
  std::optional<std::set<std::string>> pruned;  // once it was read
  std::unique_ptr<ArtifactReader> reader;       // of the artifact that is being read
  std::string artifact_object;
  std::string artifact_file;

  void Add(std::string file, std::string object, std::string problem) {
    faults.push_back({std::move(file), std::move(object), std::move(problem)});
  }
  // The rest of a phase that cannot be gone on with.
  void GiveUp(absl::string_view object, const absl::Status& status, Phase next) {
    Add(database_name, std::string(object), std::string(status.message()));
    phase = next;
  }

  void Step();
  void CheckLog();
  void CheckMark(const MarkReading& reading);
  std::string NameOfPage(uint32_t number);
  void CheckPages();
  void CheckIntegrity();
  absl::Status CheckEvents();
  void CheckEvent(const ChainedEvent& event, absl::string_view stored);
  bool IsGapExplained(const ChainedEvent& event);
  absl::Status CheckLinesOf(const ChainedEvent& event, Stmt* select_lines);
  absl::Status CheckLines();
  absl::Status CheckArtifacts();
  void CheckPiece();
  absl::Status CheckMark();
  absl::Status CheckVerdicts();
};

Verifier::Verifier(const std::string& data_directory, std::unique_ptr<VerdictCheck> verdicts)
    : work_(std::make_unique<Work>(data_directory, std::move(verdicts))) {}
Verifier::Verifier(VerifiedCopy copy, std::unique_ptr<VerdictCheck> verdicts)
    : work_(std::make_unique<Work>(std::move(copy), std::move(verdicts))) {}
Verifier::~Verifier() = default;

std::vector<core::StoredFault> Verifier::Step() {
  work_->Step();
  return std::exchange(work_->faults, {});
}

bool Verifier::is_done() const {
  return work_->phase == Phase::kDone;
}

const core::VerifyCounts& Verifier::counts() const {
  return work_->counts;
}

core::VerifyCounts RunToEnd(Verification* verification,
                            absl::FunctionRef<void(const core::StoredFault&)> found) {
  while (!verification->is_done()) {
    for (const core::StoredFault& fault : verification->Step())
      found(fault);
  }
  return verification->counts();
}

core::VerifyCounts Verify(const std::string& data_directory,
                          absl::FunctionRef<void(const core::StoredFault&)> found,
                          std::unique_ptr<VerdictCheck> verdicts) {
  Verifier verifier(data_directory, std::move(verdicts));
  return RunToEnd(&verifier, found);
}

void Verifier::Work::Step() {
  switch (phase) {
    case Phase::kLog:
      return CheckLog();
    case Phase::kPages:
      return CheckPages();
    case Phase::kIntegrity:
      return CheckIntegrity();
    case Phase::kEvents:
      if (const absl::Status status = CheckEvents(); !status.ok())
        GiveUp(absl::StrCat("events after ", last_seq), status, Phase::kLines);
      return;
    case Phase::kLines:
      if (const absl::Status status = CheckLines(); !status.ok())
        GiveUp(absl::StrCat("lines of runs after ", RunName(last_run)), status, Phase::kArtifacts);
      return;
    case Phase::kArtifacts:
      if (const absl::Status status = CheckArtifacts(); !status.ok())
        GiveUp("table artifacts", status, Phase::kMark);
      return;
    case Phase::kMark:
      if (const absl::Status status = CheckMark(); !status.ok())
        GiveUp("table log_identity", status, Phase::kVerdicts);
      phase = Phase::kVerdicts;
      return;
    case Phase::kVerdicts:
      if (const absl::Status status = CheckVerdicts(); !status.ok())
        GiveUp("scores of submissions", status, Phase::kDone);
      return;
    case Phase::kDone:
      return;
  }
}

// ------------------------------------------------------------------------- the log and its pages

void Verifier::Work::CheckMark(const MarkReading& reading) {
  for (const std::string& problem : reading.problems)
    Add(copy.mark_name, problem.substr(0, problem.find(" is ")), problem);
  if (!reading.mark.has_value())
    Add(copy.mark_name, "the whole file",
        "it is missing or cannot be read: a loss of events would not show");
}

void Verifier::Work::CheckLog() {
  phase = Phase::kPages;
  // While a daemon writes, the log may begin anew, or the mark be half written: then look again.
  std::optional<WalFault> fault;
  MarkReading reading;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const absl::StatusOr<MarkReading> read = ReadMark(MarkPath(database));
    if (!read.ok())
      return Add(copy.mark_name, "the whole file", std::string(read.status().message()));
    reading = *read;
    if (!reading.problems.empty() || !reading.mark.has_value()) continue;
    const absl::StatusOr<std::optional<WalFault>> checked =
        CheckWal(JoinPath(directory, kWal), reading.mark->wal);
    if (!checked.ok()) return Add(kWal, "the whole file", std::string(checked.status().message()));
    fault = *checked;
    if (!fault.has_value()) break;
  }
  CheckMark(reading);
  if (reading.mark.has_value()) mark = *reading.mark;
  counts.frame_count = mark.wal.frame_count;
  if (!fault.has_value()) return;
  std::string object = fault->frame == 0 ? "the header" : absl::StrCat("frame ", fault->frame);
  if (fault->page_number != 0) absl::StrAppend(&object, ", ", NameOfPage(fault->page_number));
  Add(kWal, object, fault->problem);
}

// "page 7 (table events)"
std::string Verifier::Work::NameOfPage(uint32_t number) {
  const std::string page = absl::StrCat("page ", number);
  if (!unchecked.has_value()) {
    absl::StatusOr<Db> opened = Db::Open(database, OpenMode::kUnchecked);
    if (opened.ok()) unchecked = *std::move(opened);
  }
  if (!unchecked.has_value() || ++naming_count > kNamingsMax) return page;
  const std::map<uint32_t, std::string> names = NamesOfPages(&*unchecked, {number});
  return names.empty() ? absl::StrCat(page, " (of no table or index that can be followed to it)")
                       : absl::StrCat(page, " (", names.begin()->second, ")");
}

void Verifier::Work::CheckPages() {
  const auto fail = [&](absl::string_view problem) {
    Add(database_name, "the whole file", std::string(problem));
    phase = Phase::kArtifacts;
  };
  if (!FileExists(database)) return fail("it is missing");
  if (!unchecked.has_value()) {
    absl::StatusOr<Db> opened = Db::Open(database, OpenMode::kUnchecked);
    if (!opened.ok()) return fail(opened.status().message());
    unchecked = *std::move(opened);
  }
  sqlite3_file* const file = unchecked->file();
  sqlite3_int64 size = 0;
  if (file->pMethods->xFileSize(file, &size) != SQLITE_OK) return fail("its size cannot be read");
  if (size == 0) return fail("it is empty");
  if (size % kPageBytes != 0 && next_page == 0)
    Add(database_name, "the end",
        absl::StrCat("it has ", size, " bytes, which are no whole pages"));
  const int64_t end = std::min<int64_t>(size / kPageBytes, next_page + kPagesOfStep);
  std::array<unsigned char, kPageBytes> page{};
  for (; next_page < end; ++next_page, ++counts.page_count) {
    const auto number = static_cast<uint32_t>(next_page + 1);
    bool is_whole = false;
    for (int i = 0; i < kReadsOfPage && !is_whole; ++i)
      is_whole = file->pMethods->xRead(file, page.data(), kPageBytes, next_page * kPageBytes) ==
                     SQLITE_OK &&
                 IsPageWhole(page, number);
    if (!is_whole) {
      Add(database_name, NameOfPage(number),
          "its checksum is wrong: the page is damaged, or another program has written it");
    }
  }
  if (next_page >= size / kPageBytes) phase = Phase::kIntegrity;
}

void Verifier::Work::CheckIntegrity() {
  phase = Phase::kEvents;
  absl::StatusOr<Db> opened = Db::Open(database, OpenMode::kReadOnly);
  if (!opened.ok()) return GiveUp("the header or the schema", opened.status(), Phase::kArtifacts);
  db = *std::move(opened);
  absl::StatusOr<Stmt> check =
      db->Prepare(absl::StrCat("PRAGMA integrity_check(", kIntegrityRowsMax, ")"));
  if (!check.ok()) return GiveUp("the schema", check.status(), Phase::kArtifacts);
  while (true) {
    const absl::StatusOr<bool> is_row = check->Step();
    if (!is_row.ok()) return GiveUp("integrity_check", is_row.status(), Phase::kEvents);
    if (!*is_row) return;
    if (check->Text(0) != "ok") Add(database_name, "integrity_check", std::string(check->Text(0)));
  }
}

// -------------------------------------------------------------------------- the chain of events

absl::Status Verifier::Work::CheckEvents() {
  ASSIGN_OR_RETURN(Stmt select, db->Prepare(absl::StrCat(kSelectChainedEvents, " LIMIT ?2")));
  ASSIGN_OR_RETURN(Stmt select_lines, db->Prepare(kSelectChainedLines));
  RETURN_IF_ERROR(select.Bind(last_seq, kEventsOfStep));
  int64_t row_count = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool is_row, select.Step());
    if (!is_row) break;
    ++row_count;
    const ChainedEvent event = ReadChainedEvent(select);
    CheckEvent(event, select.Text(10));
    RETURN_IF_ERROR(CheckLinesOf(event, &select_lines));
  }
  counts.event_count += row_count;
  if (row_count < kEventsOfStep) phase = Phase::kLines;
  return absl::OkStatus();
}

// Goes on from what is stored, so that one edit is one fault.
void Verifier::Work::CheckEvent(const ChainedEvent& event, absl::string_view stored) {
  const std::string name = absl::StrCat("event ", event.seq, " (", event.type, ")");
  if (event.seq != last_seq + 1 && !IsGapExplained(event)) {
    Add(database_name, absl::StrCat("events ", last_seq + 1, " to ", event.seq - 1),
        "they are missing");
  }
  if (ChainHash(chain, event) != stored) {
    Add(database_name, name,
        absl::StrCat("its hash does not follow from it and event ", last_seq,
                     ": one of them was edited, removed or inserted"));
  }
  last_seq = event.seq;
  chain = std::string(stored);
  if (last_seq == mark.seq) chain_at_mark = chain;
}

bool Verifier::Work::IsGapExplained(const ChainedEvent& event) {
  if (event.type != core::DataLossAccepted::kType) return false;
  const absl::StatusOr<core::Event> decoded =
      DecodeEvent(event.type, static_cast<int>(event.version), event.body);
  if (!decoded.ok()) return false;
  const auto& loss = std::get<core::DataLossAccepted>(*decoded);
  return loss.first_lost_seq == last_seq + 1 && loss.last_lost_seq == event.seq - 1;
}

absl::Status Verifier::Work::CheckLinesOf(const ChainedEvent& event, Stmt* select_lines) {
  const bool is_about_lines = event.type == core::RunEventsAppended::kType;
  if (!is_about_lines && event.lines.empty()) return absl::OkStatus();
  const LinesSeal seal = DecodeLinesSeal(event.lines);
  const std::string object =
      absl::StrCat("lines ", seal.first_ordinal, " to ", seal.first_ordinal + seal.count - 1,
                   " of run ", RunName(event.run), " (event ", event.seq, ")");
  int64_t& next = next_ordinals.try_emplace(event.run, 1).first->second;
  if (seal.count < 1) {
    Add(database_name, object, "what the event says of them cannot be read");
    return absl::OkStatus();
  }
  if (seal.first_ordinal != next)
    Add(database_name, object, absl::StrCat("they do not follow line ", next - 1, " of the run"));
  next = seal.first_ordinal + seal.count;
  counts.line_count += seal.count;
  ASSIGN_OR_RETURN(const LinesSeal stored,
                   SealStoredLines(select_lines, event.run, seal.first_ordinal, seal.count));
  if (stored != seal) {
    Add(database_name, object,
        absl::StrCat("they are not those that were committed: ", stored.count, " of ", seal.count,
                     " are there, and their digest differs"));
  }
  return absl::OkStatus();
}

// Lines that no event is about. One run a step.
absl::Status Verifier::Work::CheckLines() {
  ASSIGN_OR_RETURN(Stmt select_run, db->Prepare(kSelectNextRun));
  RETURN_IF_ERROR(select_run.Bind(last_run));
  ASSIGN_OR_RETURN(const bool is_row, select_run.Step());
  if (!is_row) {
    phase = Phase::kArtifacts;
    return absl::OkStatus();
  }
  last_run = select_run.Int(0);
  select_run.Rewind();
  ASSIGN_OR_RETURN(Stmt select_max, db->Prepare(kSelectMaxOrdinal));
  RETURN_IF_ERROR(select_max.Bind(last_run));
  ASSIGN_OR_RETURN(const bool is_found, select_max.Step());
  const int64_t last = is_found ? select_max.Int(0) : 0;
  select_max.Rewind();
  const auto known = next_ordinals.find(last_run);
  const int64_t expected = known == next_ordinals.end() ? 0 : known->second - 1;
  if (last <= expected) return absl::OkStatus();
  // Committed since the events were read.
  ASSIGN_OR_RETURN(const int64_t seq_now, db->QueryInt("SELECT COALESCE(MAX(seq), 0) FROM events"));
  if (seq_now == last_seq) {
    Add(database_name,
        absl::StrCat("lines ", expected + 1, " to ", last, " of run ", RunName(last_run)),
        "no event is about them: they were inserted");
  }
  return absl::OkStatus();
}

// ------------------------------------------------------------------------------------- artifacts

absl::Status Verifier::Work::CheckArtifacts() {
  if (reader != nullptr) {
    CheckPiece();
    return absl::OkStatus();
  }
  phase = Phase::kMark;
  if (!db.has_value()) return absl::OkStatus();
  if (!pruned.has_value()) {
    ASSIGN_OR_RETURN(pruned, ReadPruned(&*db));
  }
  ASSIGN_OR_RETURN(Stmt select, db->Prepare(kSelectArtifact));
  RETURN_IF_ERROR(select.Bind(last_sha256));
  ASSIGN_OR_RETURN(const bool is_row, select.Step());
  if (!is_row) return absl::OkStatus();
  phase = Phase::kArtifacts;
  last_sha256 = std::string(select.Text(0));
  ++counts.artifact_count;
  const core::ArtifactRef artifact = {.file_name = std::string(select.Text(3)),
                                      .sha256 = last_sha256};
  artifact_object = NameOfArtifact(artifact, core::RunId{select.Int(2)});
  if (const int64_t others = select.Int(5) - 1; others > 0)
    absl::StrAppend(&artifact_object, " and of ", others, " more");
  artifact_file = FileOfArtifact(artifact.sha256);
  absl::StatusOr<std::unique_ptr<ArtifactReader>> opened =
      ArtifactReader::Open(JoinPath(directory, "artifacts"), artifact.sha256);
  if (absl::IsNotFound(opened.status()) && pruned->contains(last_sha256)) {
    --counts.artifact_count;
    return absl::OkStatus();
  }
  if (!opened.ok()) {
    Add(artifact_file, artifact_object, std::string(opened.status().message()));
    return absl::OkStatus();
  }
  reader = *std::move(opened);
  artifact_file = reader->file();
  return absl::OkStatus();
}

void Verifier::Work::CheckPiece() {
  for (int64_t done = 0; done < kBytesOfStep;) {
    const absl::StatusOr<std::string> piece = reader->Next();
    if (piece.ok() && !piece->empty()) {
      done += static_cast<int64_t>(piece->size());
      continue;
    }
    if (!piece.ok()) Add(artifact_file, artifact_object, std::string(piece.status().message()));
    reader.reset();
    return;
  }
}

// ------------------------------------------------------------------------ what was acknowledged

absl::Status Verifier::Work::CheckMark() {
  if (!db.has_value() || mark.identity.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(Stmt select, db->Prepare(kSelectLogIdentity));
  ASSIGN_OR_RETURN(const bool is_row, select.Step());
  if (is_row && select.Text(0) != mark.identity) {
    Add(copy.mark_name, "its identity",
        absl::StrCat("it is of database ", mark.identity, ", not of ", select.Text(0)));
  }
  select.Rewind();
  if (last_seq < mark.seq) {
    Add(database_name, absl::StrCat("events ", last_seq + 1, " to ", mark.seq),
        "they were acknowledged and are missing");
  } else if (mark.seq > 0 && chain_at_mark != mark.chain) {
    Add(database_name, absl::StrCat("event ", mark.seq),
        "it or one before it is not the one that was acknowledged: its hash differs from the "
        "mark's");
  }
  return absl::OkStatus();
}

// ---------------------------------------------------------------------------------------- scores

absl::Status Verifier::Work::CheckVerdicts() {
  bool is_more = false;
  if (db.has_value() && verdicts != nullptr) {
    ASSIGN_OR_RETURN(const int64_t version, db->QueryInt("PRAGMA user_version"));
    if (version != std::ssize(EmbeddedMigrations())) {
      // Of another version of this program, which alone can read its rows.
      phase = Phase::kDone;
      ASSIGN_OR_RETURN(counts.uncomputed_score_count, db->QueryInt(kCountEnded));
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(is_more,
                     verdicts->Step(database, JoinPath(directory, "artifacts"), &counts, &faults));
  }
  if (!is_more) phase = Phase::kDone;
  return absl::OkStatus();
}

}  // namespace assay::store
