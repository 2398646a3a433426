// What questions to the history compare, in tables of their own (migrations/0014_add_facts.sql): it
// is all in the bodies of submissions and runs, and can be made from them anew.

#ifndef SERVER_STORE_FACTS_H_
#define SERVER_STORE_FACTS_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/core/types.h"
#include "server/store/sqlite.h"

namespace assay::store {

// What a program writes that derives facts as this one does. A greater number has them made anew
// when the database is opened.
inline constexpr int64_t kFactsVersion = 2;

// Writes facts within the transaction of its caller. Not thread-safe; must not outlive `db`.
// Any method fails as SQLite does.
class FactWriter {
 public:
  absl::Status Prepare(Db* db);

  // What a submission has by itself. Its row in `submissions` has to be there. `is_new`: what never
  // changes is written as well.
  absl::Status Write(const core::Submission& submission, bool is_new);
  // The facts of its submission have to be there.
  absl::Status Write(const core::Run& run);
  // What a submission has from its runs, if it has ended. After all of these are written.
  absl::Status Summarize(core::SubmissionId id);

 private:
  absl::Status WriteFindings(core::SubmissionId submission, core::RunId run,
                             const std::vector<core::Finding>& findings);

  Stmt upsert_entry_, publish_runs_, upsert_run_, insert_hyperparameter_, delete_findings_,
      insert_finding_, summarize_;
};

// Makes all facts anew in one transaction if they are of another version than this program's, or
// `is_forced`. DATA_LOSS if a body cannot be read.
absl::Status RebuildFacts(Db* db, bool is_forced);

// Rows that are not what would be made anew: "- " and the row as it is kept, "+ " and as it would
// be made. Changes nothing.
absl::StatusOr<std::vector<std::string>> FactDifferences(Db* db);

}  // namespace assay::store

#endif  // SERVER_STORE_FACTS_H_
