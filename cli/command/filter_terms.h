// Filters of the history (assay help query) on the command line: positional words and the options
// that stand for equalities.

#ifndef CLI_COMMAND_FILTER_TERMS_H_
#define CLI_COMMAND_FILTER_TERMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "assay/v1/resources.pb.h"

#include "cli/command/command.h"
#include "cli/command/context.h"
#include "common/client/client.h"
#include "common/filter.h"
#include "common/history_fields.h"

namespace assay::cli {

// The positional FILTER, with its help.
Positional FilterPositional(
    const std::string& help = "in quotes, or word by word; nothing: all entries");

// What the words of FILTER say as one filter. KEY=VALUE with spaces in it, which the shell has kept
// together, needs no further quotes.
std::string FilterOf(std::vector<std::string> terms);

// field="value", whatever is in the value.
std::string Equality(absl::string_view field, const std::string& value);

// `filter` and, of each option that is given among org, system, benchmark, division, round, state,
// entry and since, its equality: "since" of when a row was created. INVALID_ARGUMENT for a time
// that is none.
absl::StatusOr<std::string> WithFilterOptions(const Arguments& arguments, HistoryKind kind,
                                              const std::string& filter);

// The filter as this program reads it, for its errors, which need no coordinator, and for its
// parentheses. INVALID_ARGUMENT with the position, the reason and the choices.
absl::StatusOr<FilterNode> ReadFilter(HistoryKind kind, const std::string& filter);

// Entries, or runs, that match `filter`, whole: up to `limit`, by `order_by`, or newest first.
// INVALID_ARGUMENT as ReadFilter and NOT_FOUND as CheckNamedRounds; else the coordinator's error.
absl::StatusOr<std::vector<v1::Submission>> FindEntries(const client::Client& client,
                                                        const std::string& filter, int64_t limit,
                                                        const std::string& order_by = "");
absl::StatusOr<std::vector<v1::Run>> FindRuns(const client::Client& client,
                                              const std::string& filter, int64_t limit);

// NOT_FOUND if nothing can match because a round is named that there is none of: to be asked where
// nothing has matched. `filter`: as the coordinator has understood it.
absl::Status CheckNamedRounds(const client::Client& client, HistoryKind kind,
                              const std::string& filter);

// --since, of lists, and its value. INVALID_ARGUMENT for a time that is none.
Option SinceOption();
absl::StatusOr<absl::Time> SinceTime(const std::string& value);

// --limit of lists, and its value: without one, all rows where a program reads them, and the newest
// `at_terminal` for a person.
Option ListLimitOption(const std::string& at_terminal = "50");
absl::StatusOr<int64_t> ListLimit(const Context& context, const Arguments& arguments,
                                  int64_t at_terminal = 50);

// Says on stderr that a list was cut at `limit`; `total_count`: of all there are, 0 if not known.
void NoteCut(const Context& context, int64_t limit, int64_t total_count);

}  // namespace assay::cli

#endif  // CLI_COMMAND_FILTER_TERMS_H_
