#include "server/store/facts.h"

#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "common/json_document.h"
#include "common/log.h"
#include "common/status.h"
#include "server/store/codec.h"

namespace assay::store {
namespace {

using FactValues = std::vector<SqlValue>;

constexpr char kUpsertEntryFacts[] =
    "INSERT INTO entry_facts (id, organization, system, benchmark, division, round, category, "
    "scaling, metric, state, minutes, normalized_minutes, models_per_minute, verdict, node_count, "
    "ranks_per_node, run_count, is_imported, is_mlperf_result, is_staging_timed, dataset, backend, "
    "submitter, rules_digest, created_at_us, ended_at_us, published_at_us, withdrawn_at_us) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, "
    "?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28) "
    "ON CONFLICT (id) DO UPDATE SET state = excluded.state, minutes = excluded.minutes, "
    "normalized_minutes = excluded.normalized_minutes, "
    "models_per_minute = excluded.models_per_minute, verdict = excluded.verdict, "
    "run_count = excluded.run_count, ended_at_us = excluded.ended_at_us, "
    "published_at_us = excluded.published_at_us, withdrawn_at_us = excluded.withdrawn_at_us";
// Before the entry's row has the new time, so that nothing is looked at where it is the old one.
constexpr char kPublishRuns[] =
    "UPDATE run_facts SET published_at_us = ?2 WHERE entry_id = ?1 AND "
    "(SELECT published_at_us FROM entry_facts WHERE id = ?1) IS NOT ?2";
constexpr char kUpsertRunFacts[] =
    "INSERT INTO run_facts (id, entry_id, number, organization, system, benchmark, division, "
    "round, "
    "published_at_us, state, state_reason, seconds, epochs, epoch_seconds, quality, "
    "staging_seconds, energy_joules, touch_ms, touch_assurance, node_count, accelerators, batch, "
    "seed, exit_code, is_converged, is_compliant, run_start_us, created_at_us, started_at_us, "
    "ended_at_us, finding_count) "
    "SELECT ?1, e.id, ?3, e.organization, e.system, e.benchmark, e.division, e.round, "
    "e.published_at_us, ?4, ?5, ?6, ?7, "
    "(?6 - CASE WHEN e.is_staging_timed THEN COALESCE(?9, 0.0) ELSE 0.0 END) / NULLIF(?7, 0), "
    "?8, ?9, ?10, ?11, ?12, e.node_count, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23 "
    "FROM entry_facts e WHERE e.id = ?2 "
    "ON CONFLICT (id) DO UPDATE SET state = excluded.state, state_reason = excluded.state_reason, "
    "seconds = excluded.seconds, epochs = excluded.epochs, "
    "epoch_seconds = excluded.epoch_seconds, quality = excluded.quality, "
    "staging_seconds = excluded.staging_seconds, energy_joules = excluded.energy_joules, "
    "touch_ms = excluded.touch_ms, touch_assurance = excluded.touch_assurance, "
    "accelerators = excluded.accelerators, "
    "batch = excluded.batch, seed = excluded.seed, exit_code = excluded.exit_code, "
    "is_converged = excluded.is_converged, is_compliant = excluded.is_compliant, "
    "run_start_us = excluded.run_start_us, started_at_us = excluded.started_at_us, "
    "ended_at_us = excluded.ended_at_us, finding_count = excluded.finding_count";
constexpr char kInsertHyperparameter[] =
    "INSERT INTO hyperparameters (entry_id, key, number, text) VALUES (?1, ?2, ?3, ?4) "
    "ON CONFLICT (entry_id, key) DO UPDATE SET number = excluded.number, text = excluded.text";
constexpr char kDeleteFindingFacts[] =
    "DELETE FROM run_findings WHERE entry_id = ?1 AND run_id = ?2";
constexpr char kInsertFindingFact[] =
    "INSERT INTO run_findings (entry_id, run_id, ordinal, rule, severity, class, key, line, "
    "expected, found, section, remedy) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
constexpr char kSummarize[] =
    "UPDATE entry_facts SET (epochs, epoch_seconds, quality, staging_seconds, energy_joules, "
    "accelerators, batch, run_start_us, is_converged, is_compliant, converged_count) = "
    "(SELECT AVG(epochs) FILTER (WHERE is_converged = 1), "
    "AVG(epoch_seconds) FILTER (WHERE is_converged = 1), "
    "AVG(quality) FILTER (WHERE is_converged = 1), "
    "AVG(staging_seconds) FILTER (WHERE state = 'succeeded'), AVG(energy_joules), "
    "MAX(accelerators), MAX(batch), MIN(run_start_us), "
    "MIN(is_converged) FILTER (WHERE state = 'succeeded'), "
    "MIN(is_compliant) FILTER (WHERE state = 'succeeded'), "
    "COUNT(id) FILTER (WHERE is_converged = 1) FROM run_facts WHERE entry_id = ?1) "
    "WHERE id = ?1 AND state IN ('valid', 'invalid', 'cancelled')";

constexpr char kSelectFactsVersion[] =
    "SELECT COALESCE(MAX(value), 0) FROM counters WHERE name = 'facts_version'";
constexpr char kWriteFactsVersion[] =
    "INSERT INTO counters (name, value) VALUES ('facts_version', ?1) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value";
constexpr char kDeleteAllFacts[] =
    "DELETE FROM run_findings; DELETE FROM hyperparameters; DELETE FROM run_facts; "
    "DELETE FROM entry_facts;";
constexpr char kSelectAllSubmissions[] = "SELECT body FROM submissions ORDER BY id";
constexpr char kSelectAllRuns[] = "SELECT body FROM runs ORDER BY id";
constexpr char kSelectAllIds[] = "SELECT id FROM submissions ORDER BY id";
constexpr const char* kSelectFacts[] = {
    "SELECT 'entry', * FROM entry_facts ORDER BY id", "SELECT 'run', * FROM run_facts ORDER BY id",
    "SELECT 'hyperparameter', * FROM hyperparameters ORDER BY entry_id, key",
    "SELECT 'finding', * FROM run_findings ORDER BY entry_id, run_id, ordinal"};

SqlValue OrNull(const std::string& text) {
  return text.empty() ? SqlValue() : SqlValue(text);
}
SqlValue OrNull(std::optional<double> number) {
  return number.has_value() && std::isfinite(*number) ? SqlValue(*number) : SqlValue();
}
SqlValue OrNull(std::optional<bool> is_so) {
  return is_so.has_value() ? SqlValue(int64_t{*is_so}) : SqlValue();
}
SqlValue OrNull(std::optional<int64_t> number) {
  return number.has_value() ? SqlValue(*number) : SqlValue();
}
// Zero says that it has not happened, or is not known.
SqlValue UnlessZero(int64_t number) {
  return number == 0 ? SqlValue() : SqlValue(number);
}
SqlValue SecondsOrNull(std::optional<int64_t> ms) {
  return ms.has_value() ? SqlValue(static_cast<double>(*ms) / 1e3) : SqlValue();
}
SqlValue MillisecondsOrNull(std::optional<int64_t> us) {
  return us.has_value() ? SqlValue(static_cast<double>(*us) / 1e3) : SqlValue();
}
std::string LowerState(absl::string_view name) {
  return absl::AsciiStrToLower(name);
}

SqlValue PublishedAt(const core::Submission& submission) {
  return UnlessZero(submission.published_at_us);
}

FactValues EntryValues(const core::Submission& submission) {
  const core::SubmissionSpec& spec = submission.spec;
  const auto& throughput = submission.throughput;
  const auto& convergence = submission.convergence;
  return {submission.id.number,
          spec.organization,
          spec.system,
          spec.benchmark,
          spec.division,
          spec.round,
          OrNull(spec.status),
          OrNull(submission.scaling),
          spec.metric,
          LowerState(ToString(submission.state)),
          OrNull(submission.score_minutes),
          OrNull(convergence ? convergence->normalized_minutes : std::nullopt),
          throughput && throughput->time_to_all_minutes > 0
              ? SqlValue(throughput->model_count / throughput->time_to_all_minutes)
              : SqlValue(),
          convergence ? OrNull(convergence->verdict) : SqlValue(),
          int64_t{spec.node_count},
          int64_t{spec.ranks_per_node},
          static_cast<int64_t>(submission.runs.size()),
          int64_t{submission.is_imported},
          int64_t{submission.rules.is_mlperf_result},
          int64_t{submission.rules.is_staging_timed},
          OrNull(spec.dataset),
          OrNull(core::BackendOf(spec.workload)),
          OrNull(submission.submitter),
          OrNull(submission.rules.digest),
          submission.created_at_us,
          UnlessZero(submission.ended_at_us),
          PublishedAt(submission),
          UnlessZero(submission.withdrawn_at_us)};
}

// What programs write into their logs may be any number: nothing, where it does not fit.
std::optional<int64_t> Difference(std::optional<int64_t> end, std::optional<int64_t> begin) {
  int64_t difference = 0;
  if (!end.has_value() || !begin.has_value() || __builtin_sub_overflow(*end, *begin, &difference))
    return std::nullopt;
  return difference;
}

std::optional<int64_t> Micros(std::optional<int64_t> ms) {
  int64_t us = 0;
  if (!ms.has_value() || __builtin_mul_overflow(*ms, int64_t{1000}, &us)) return std::nullopt;
  return us;
}

FactValues RunValues(const core::Run& run) {
  const core::RunFacts& facts = run.facts;
  std::optional<int64_t> exit_code;
  if (run.exit_code.has_value()) exit_code = *run.exit_code;
  return {run.id.number,
          run.submission.number,
          int64_t{run.number},
          LowerState(ToString(run.state)),
          OrNull(run.state_reason),
          SecondsOrNull(Difference(facts.run_stop_ms, facts.run_start_ms)),
          OrNull(facts.epoch_count),
          OrNull(facts.quality),
          SecondsOrNull(facts.staging_ms),
          OrNull(facts.energy_joules),
          MillisecondsOrNull(facts.touch_after_start_us),
          OrNull(facts.touch_assurance),
          UnlessZero(facts.instance_scale),
          UnlessZero(facts.global_batch_size),
          core::IsSeedShown(run.state) ? SqlValue(run.seed) : SqlValue(),
          OrNull(exit_code),
          OrNull(facts.is_converged),
          OrNull(facts.is_compliant),
          OrNull(Micros(facts.run_start_ms)),
          run.created_at_us,
          UnlessZero(run.started_at_us),
          UnlessZero(run.ended_at_us),
          static_cast<int64_t>(facts.findings.size())};
}

// Number and text of a hyperparameter, one of them null.
std::pair<SqlValue, SqlValue> HyperparameterValue(const std::string& json) {
  const auto value = ParseJsonDocument<nlohmann::json>(json);
  if (value.is_number()) return {value.get<double>(), {}};
  if (value.is_string()) return {SqlValue(), value.get<std::string>()};
  return {SqlValue(), json};
}

// Runs `stmt`, which gives a body in its first column, and calls `take` with each.
template <typename Take>
absl::Status ForEachBody(Db* db, absl::string_view sql, Take take) {
  ASSIGN_OR_RETURN(Stmt stmt, db->Prepare(sql));
  while (true) {
    ASSIGN_OR_RETURN(const bool is_row, stmt.Step());
    if (!is_row) return absl::OkStatus();
    RETURN_IF_ERROR(take(stmt));
  }
}

absl::Status RunWith(Stmt* stmt, const FactValues& values) {
  RETURN_IF_ERROR(stmt->BindValues(values));
  const absl::StatusOr<bool> row = stmt->Step();
  stmt->Rewind();
  return row.status();
}

absl::Status MakeFacts(Db* db) {
  RETURN_IF_ERROR(db->Exec(kDeleteAllFacts));
  FactWriter writer;
  RETURN_IF_ERROR(writer.Prepare(db));
  RETURN_IF_ERROR(ForEachBody(db, kSelectAllSubmissions, [&](const Stmt& row) -> absl::Status {
    ASSIGN_OR_RETURN(const core::Submission submission, DecodeSubmission(row.Text(0)));
    return writer.Write(submission, /*is_new=*/true);
  }));
  RETURN_IF_ERROR(ForEachBody(db, kSelectAllRuns, [&](const Stmt& row) -> absl::Status {
    ASSIGN_OR_RETURN(const core::Run run, DecodeRun(row.Text(0)));
    return writer.Write(run);
  }));
  RETURN_IF_ERROR(ForEachBody(db, kSelectAllIds, [&](const Stmt& row) {
    return writer.Summarize(core::SubmissionId{row.Int(0)});
  }));
  ASSIGN_OR_RETURN(Stmt version, db->Prepare(kWriteFactsVersion));
  return version.Run(kFactsVersion);
}

std::string FactText(const SqlValue& value) {
  if (const auto* const text = std::get_if<std::string>(&value))
    return absl::StrCat("'", *text, "'");
  if (const auto* const integer = std::get_if<int64_t>(&value)) return absl::StrCat(*integer);
  // Equal bits have equal text.
  if (const auto* const number = std::get_if<double>(&value)) return absl::StrFormat("%a", *number);
  return "null";
}

// All rows of the tables of facts, one line each, in order.
absl::StatusOr<std::vector<std::string>> DumpFacts(Db* db) {
  std::vector<std::string> lines;
  for (const char* const sql : kSelectFacts) {
    RETURN_IF_ERROR(ForEachBody(db, sql, [&lines](const Stmt& row) {
      std::vector<std::string> values;
      for (int column = 0; column < row.column_count(); ++column)
        values.push_back(FactText(row.Value(column)));
      lines.push_back(absl::StrJoin(values, " "));
      return absl::OkStatus();
    }));
  }
  return lines;
}

// Lines of `from` that `other` lacks.
void AppendMissing(absl::string_view prefix, const std::vector<std::string>& from,
                   const std::vector<std::string>& other, std::vector<std::string>* lines) {
  const std::set<std::string> present(other.begin(), other.end());
  for (const std::string& line : from)
    if (!present.contains(line)) lines->push_back(absl::StrCat(prefix, line));
}

}  // namespace

absl::Status FactWriter::Prepare(Db* db) {
  const std::pair<Stmt*, const char*> all[] = {{&upsert_entry_, kUpsertEntryFacts},
                                               {&publish_runs_, kPublishRuns},
                                               {&upsert_run_, kUpsertRunFacts},
                                               {&insert_hyperparameter_, kInsertHyperparameter},
                                               {&delete_findings_, kDeleteFindingFacts},
                                               {&insert_finding_, kInsertFindingFact},
                                               {&summarize_, kSummarize}};
  for (const auto& [stmt, sql] : all) {
    ASSIGN_OR_RETURN(*stmt, db->Prepare(sql));
  }
  return absl::OkStatus();
}

absl::Status FactWriter::Write(const core::Submission& submission, bool is_new) {
  const int64_t id = submission.id.number;
  if (!is_new) RETURN_IF_ERROR(RunWith(&publish_runs_, {id, PublishedAt(submission)}));
  RETURN_IF_ERROR(RunWith(&upsert_entry_, EntryValues(submission)));
  if (is_new) {
    for (const core::Hyperparameter& parameter : submission.spec.hyperparameters) {
      auto [number, text] = HyperparameterValue(parameter.json_value);
      RETURN_IF_ERROR(RunWith(&insert_hyperparameter_,
                              {id, parameter.key, std::move(number), std::move(text)}));
    }
  }
  if (!is_new && !IsTerminal(submission.state)) return absl::OkStatus();
  return WriteFindings(submission.id, {}, submission.findings);
}

absl::Status FactWriter::Write(const core::Run& run) {
  RETURN_IF_ERROR(RunWith(&upsert_run_, RunValues(run)));
  // They come with the verdict.
  if (!IsTerminal(run.state) && run.facts.findings.empty()) return absl::OkStatus();
  return WriteFindings(run.submission, run.id, run.facts.findings);
}

absl::Status FactWriter::WriteFindings(core::SubmissionId submission, core::RunId run,
                                       const std::vector<core::Finding>& findings) {
  RETURN_IF_ERROR(delete_findings_.Run(submission.number, run.number));
  int64_t ordinal = 0;
  for (const core::Finding& finding : findings)
    RETURN_IF_ERROR(
        RunWith(&insert_finding_,
                {submission.number, run.number, ++ordinal, finding.rule_id,
                 std::string(rules::SeverityName(finding.severity)), OrNull(finding.error_class),
                 OrNull(finding.key), UnlessZero(finding.line), OrNull(finding.expected),
                 OrNull(finding.found), OrNull(finding.section), OrNull(finding.remedy)}));
  return absl::OkStatus();
}

absl::Status FactWriter::Summarize(core::SubmissionId id) {
  return summarize_.Run(id.number);
}

absl::Status RebuildFacts(Db* db, bool is_forced) {
  ASSIGN_OR_RETURN(const int64_t version, db->QueryInt(kSelectFactsVersion));
  if (version == kFactsVersion && !is_forced) return absl::OkStatus();
  RETURN_IF_ERROR(Annotate(db->Transact([db] { return MakeFacts(db); }), "facts"));
  LOG(INFO) << "facts made version=" << kFactsVersion << " before=" << version;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> FactDifferences(Db* db) {
  std::vector<std::string> lines;
  // Ends with an error, so that nothing stays of it.
  const absl::Status kept = absl::AbortedError("compared");
  const absl::Status status = db->Transact([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<std::string> stored, DumpFacts(db));
    RETURN_IF_ERROR(MakeFacts(db));
    ASSIGN_OR_RETURN(const std::vector<std::string> made, DumpFacts(db));
    AppendMissing("- ", stored, made, &lines);
    AppendMissing("+ ", made, stored, &lines);
    return kept;
  });
  if (status != kept) return status;
  return lines;
}

}  // namespace assay::store
