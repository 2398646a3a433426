// What several pages are made of: links, badges, lists of findings.

#ifndef SERVER_WEB_PAGES_PARTS_H_
#define SERVER_WEB_PAGES_PARTS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#include "server/web/frame.h"
#include "server/web/html.h"
#include "server/web/table.h"

namespace assay::web {

// So many lines has a page of a log.
inline constexpr int64_t kLogPageLines = 1000;

std::string EntryPath(absl::string_view id);               // /entries/e-42
std::string RunPath(absl::string_view id);                 // /runs/r-7
std::string LogPath(absl::string_view run, int64_t line);  // /runs/r-7/log?page=2#L1211
std::string RoundPath(absl::string_view round);            // /rounds/hpc-1.0.0
std::string RulePath(absl::string_view rule);              // /rules/R-HP-004
std::string NodePath(absl::string_view node);              // /fleet#w0

// The value of a member, which is text, or "".
std::string TextOf(const Json& row, absl::string_view member);

// "valid" in the colour of its meaning.
Html StateBadge(absl::string_view state);

// Whether MLCommons has reviewed an entry (its JSON): one of a round of MLPerf that was imported
// from what was published. All others are unverified (MLPerf messaging guidelines).
bool IsVerified(const Json& entry);
Html VerifiedBadge(const Json& entry);

// What the messaging guidelines want said beside scores.
Html ScoreFootnotes(const std::string& rounds);

// Columns that link to what they name.
TableColumn EntryColumn(std::string member = "id");
TableColumn RunColumn(std::string member = "id");
TableColumn StateColumn();
TableColumn YesNoColumn(std::string title, std::string member, bool is_bad_if_no = true);

// Findings grouped by their rule, each with its place in the log. `findings`: rows with rule,
// severity, key, line, expected, found, remedy and, of a run's, `run`.
Html FindingsHtml(const Json& findings);

// The findings of a run as such rows.
Json FindingRows(const Json& run);

// "3 runs", "1 run".
std::string Counted(size_t count, absl::string_view noun);

}  // namespace assay::web

#endif  // SERVER_WEB_PAGES_PARTS_H_
