// The texts of the reader's statements. Private to the store.

#ifndef SERVER_STORE_READER_SQL_H_
#define SERVER_STORE_READER_SQL_H_

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "server/store/visible_rows.h"

namespace assay::store {

inline constexpr char kGetSubmission[] = "SELECT body FROM submissions WHERE id = ?1";

// Submissions by the most selective filter that is given; the others are compared row by row. The
// names in the unary plus are hidden from the planner, so that it takes the index we mean. Whose
// submissions are walked is the order of the join: CROSS keeps it.
enum class ListKey { kNothing, kState, kFact };

inline constexpr char kListByNothing[] =
    "SELECT m.id, m.body FROM disclosures s CROSS JOIN submissions m ON m.id = s.submission_id "
    "WHERE ?1 = '' ";
inline constexpr char kListByState[] =
    "SELECT m.id, m.body FROM submissions m CROSS JOIN disclosures s ON s.submission_id = m.id "
    "WHERE m.state = ?1 ";
inline constexpr char kListByFact[] =
    "SELECT m.id, m.body FROM entry_facts f CROSS JOIN submissions m ON m.id = f.id "
    "CROSS JOIN disclosures s ON s.submission_id = f.id WHERE f.";
// Parameters ?2 to ?9; those of VisibleRows follow.
inline constexpr char kListTail[] =
    " AND (?2 = '' OR +m.organization = ?2) AND (?3 = '' OR +m.system = ?3) "
    "AND (?4 = '' OR +m.benchmark = ?4) AND (?5 = '' OR +m.division = ?5) "
    "AND (?6 = '' OR +m.round = ?6) AND (?7 = '' OR +m.state = ?7) AND ";

// `column` is an indexed one of entry_facts, and that of no other list.
inline std::string ListSql(ListKey by, absl::string_view column = "") {
  const auto [from, key] = [&]() -> std::pair<std::string, absl::string_view> {
    switch (by) {
      case ListKey::kNothing:
        return {kListByNothing, "s.submission_id"};
      case ListKey::kState:
        return {kListByState, "m.id"};
      case ListKey::kFact:
        return {absl::StrCat(kListByFact, column, " = ?1"), "f.id"};
    }
    return {};
  }();
  return absl::StrCat(from, kListTail, VisibleRows("s", 10), " AND ", key, " < ?8 ORDER BY ", key,
                      " DESC LIMIT ?9");
}

inline constexpr char kDisclosureOfSubmission[] =
    "SELECT organization, published_at_us FROM disclosures WHERE submission_id = ?1";
inline constexpr char kDisclosureOfRun[] =
    "SELECT s.organization, s.published_at_us FROM runs r CROSS JOIN disclosures s "
    "ON s.submission_id = r.submission_id WHERE r.id = ?1";
inline std::string CountSql() {
  return absl::StrCat("SELECT COUNT(submission_id) FROM disclosures s WHERE submission_id > 0 AND ",
                      VisibleRows("s", 1));
}
inline constexpr char kGetRun[] = "SELECT body FROM runs WHERE id = ?1";
// What a row of a run begins with in all lists.
inline constexpr char kRunsFrom[] =
    "SELECT r.id, r.body, s.organization, s.published_at_us FROM runs r "
    "CROSS JOIN disclosures s ON s.submission_id = r.submission_id ";
inline std::string RunsOfSql() {
  return absl::StrCat(kRunsFrom,
                      "WHERE r.submission_id = ?1 AND r.number > ?2 AND (?3 = '' OR +r.state = ?3) "
                      "AND ",
                      VisibleRows("s", 5), " ORDER BY r.number LIMIT ?4");
}
inline std::string RunsSql(bool is_by_state) {
  return absl::StrCat(kRunsFrom, is_by_state ? "WHERE r.state = ?2 " : "WHERE ?2 = '' ",
                      "AND r.id < ?1 AND ", VisibleRows("s", 4), " ORDER BY r.id DESC LIMIT ?3");
}

inline constexpr char kLastSeq[] = "SELECT COALESCE(MAX(seq), 0) FROM events";
inline constexpr char kEventsOfAll[] =
    "SELECT seq, at_us, type, version, principal, submission_id, run_id, body FROM events "
    "WHERE seq > ?1 ORDER BY seq LIMIT ?2";
// CROSS JOIN: along the log, so that its order needs no sorting. Parameters from ?4: VisibleRows.
inline std::string SeenEventsSql(bool is_of_submission) {
  return absl::StrCat(
      "SELECT e.seq, e.at_us, e.type, e.version, e.principal, e.submission_id, e.run_id, e.body, "
      "s.organization, s.published_at_us FROM events e "
      "CROSS JOIN disclosures s ON s.submission_id = e.submission_id WHERE ",
      is_of_submission ? "e.submission_id = ?3" : "?3 = 0", " AND e.seq > ?1 AND ",
      VisibleRows("s", 4), " ORDER BY e.seq LIMIT ?2");
}
// A node's seq is never greater than the event's ordinal, so both bounds hold for one node.
inline constexpr char kRunEvents[] =
    "SELECT ordinal, node_rank, seq, kind, line, text, wall_us, mono_ns, receive_us, finding, "
    "is_late, is_attributed FROM run_events WHERE run_id = ?1 AND ordinal > ?2 AND (?3 < 0 OR "
    "(node_rank = ?3 AND "
    "seq > ?2)) ORDER BY ordinal LIMIT ?4";

inline constexpr char kFindings[] =
    "SELECT finding FROM run_events WHERE run_id = ?1 AND LENGTH(finding) <= 4096 AND is_late = 0 "
    "ORDER BY ordinal LIMIT ?2";

// Parameters: role, organization and principal of who asks.
inline constexpr char kListViews[] =
    "SELECT body FROM views WHERE (+role = ?1 AND organization = ?2 AND author = ?3) OR "
    "(+is_shared = 1 AND (+role = 'operator' OR (+role = 'reviewer' AND ?1 IN ('reviewer', "
    "'operator')) OR (+role = 'submitter' AND ?1 = 'submitter' AND organization = ?2))) LIMIT "
    "10000";
inline constexpr char kListDatasets[] = "SELECT body FROM datasets ORDER BY id LIMIT 10000";
inline constexpr char kGetDataset[] = "SELECT body FROM datasets WHERE id = ?1";
inline constexpr char kGetWorker[] = "SELECT body FROM workers WHERE name = ?1";
inline constexpr char kGetAllocation[] = "SELECT body FROM allocations WHERE id = ?1";
inline constexpr char kListAllocations[] =
    "SELECT id, body FROM allocations WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
inline constexpr char kWorkersOfAllocation[] =
    "SELECT name FROM workers WHERE allocation_id = ?1 ORDER BY name LIMIT 100000";
inline constexpr char kListTokens[] = "SELECT body FROM tokens ORDER BY id LIMIT 100000";
inline constexpr char kGetBorrower[] = "SELECT submission_id FROM borrowings WHERE own_id = ?1";
// Whoever holds the bytes and is seen; a name among them may be one that is not shown.
inline std::string ArtifactSql() {
  return absl::StrCat(
      "SELECT a.file_name, a.size_bytes, r.id, r.submission_id, s.organization, s.published_at_us "
      "FROM artifacts a CROSS JOIN runs r ON r.id = a.run_id "
      "CROSS JOIN disclosures s ON s.submission_id = r.submission_id WHERE a.sha256 = ?1 AND ",
      VisibleRows("s", 2), " ORDER BY a.id LIMIT 1000");
}

}  // namespace assay::store

#endif  // SERVER_STORE_READER_SQL_H_
