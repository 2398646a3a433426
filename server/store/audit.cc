#include "server/store/audit.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace assay::store {
namespace {

// What an event changed, as the name of a resource. Of what concerns neither an entry nor a run the
// body tells it, which is short there.
constexpr char kObject[] =
    "CASE WHEN run_id IS NOT NULL THEN 'runs/r-' || run_id "
    "WHEN submission_id IS NOT NULL THEN 'submissions/e-' || submission_id "
    "ELSE coalesce("
    "'tokens/' || json_extract(body, '$.token.id'), "
    "CASE json_type(body, '$.token') WHEN 'text' "
    "THEN 'tokens/' || nullif(json_extract(body, '$.token'), '') END, "
    "'workers/' || nullif(json_extract(body, '$.worker'), ''), "
    "'allocations/' || json_extract(body, '$.allocation'), "
    "'datasets/' || json_extract(body, '$.dataset.id'), "
    "'datasets/' || json_extract(body, '$.dataset'), '') END";

// Bodies of these are long, or say no more than their type.
constexpr char kDetail[] =
    "CASE WHEN type IN ('SubmissionCreated', 'SubmissionImported', 'RunJudged', 'WorkerRegistered')"
    " THEN '' WHEN type = 'CallsRefused' THEN json_extract(body, '$.calls.method') || ' from ' || "
    "json_extract(body, '$.calls.peer') || ', ' || json_extract(body, '$.calls.count') || "
    "iif(json_extract(body, '$.calls.count') = 1, ' time: ', ' times: ') || "
    "json_extract(body, '$.calls.reason') ELSE trim(coalesce(json_extract(body, '$.state'), '') || "
    "' ' || coalesce("
    "nullif(json_extract(body, '$.reason'), ''), nullif(json_extract(body, '$.text'), ''), "
    "nullif(json_extract(body, '$.error'), ''), nullif(json_extract(body, '$.problem'), ''), "
    "json_extract(body, '$.policy'), json_extract(body, '$.directory'), '')) END";

// The number of `name` if it is "<prefix>12", else none.
bool NumberAfter(absl::string_view name, absl::string_view prefix, int64_t* number) {
  return absl::ConsumePrefix(&name, prefix) && absl::SimpleAtoi(name, number);
}

void AddObject(const std::string& object, SqlQuestion* question) {
  int64_t number = 0;
  if (NumberAfter(object, "submissions/e-", &number)) {
    absl::StrAppend(&question->sql, " AND submission_id = ?");
    question->values.emplace_back(number);
  } else if (NumberAfter(object, "runs/r-", &number)) {
    absl::StrAppend(&question->sql,
                    " AND submission_id = (SELECT submission_id FROM runs WHERE id = ?)"
                    " AND run_id = ?");
    question->values.emplace_back(number);
    question->values.emplace_back(number);
  } else {
    // A worker's history is also what it has done itself.
    absl::string_view name = object;
    const bool is_worker = absl::ConsumePrefix(&name, "workers/");
    absl::StrAppend(&question->sql, " AND ((submission_id IS NULL AND ", kObject, " = ?)",
                    is_worker ? " OR principal = ?)" : ")");
    question->values.emplace_back(object);
    if (is_worker) question->values.emplace_back(std::string(name));
  }
}

}  // namespace

SqlQuestion AuditSql(const core::AuditQuestion& audit, int32_t limit) {
  SqlQuestion question{
      .sql = absl::StrCat("SELECT seq, at_us, type, version, principal, submission_id, run_id, ",
                          audit.has_bodies ? "body" : "''", ", ", kObject, ", ", kDetail,
                          " FROM events WHERE is_change = 1 AND at_us >= ?"),
      .values = {audit.since_us}};
  if (audit.after_seq > 0) {
    absl::StrAppend(&question.sql, audit.is_newest_first ? " AND seq < ?" : " AND seq > ?");
    question.values.emplace_back(audit.after_seq);
  }
  if (!audit.principal.empty()) {
    absl::StrAppend(&question.sql, " AND principal = ?");
    question.values.emplace_back(audit.principal);
  }
  if (!audit.object.empty()) AddObject(audit.object, &question);
  absl::StrAppend(&question.sql, " ORDER BY seq ", audit.is_newest_first ? "DESC" : "ASC",
                  " LIMIT ?");
  question.values.emplace_back(int64_t{limit});
  return question;
}

}  // namespace assay::store
