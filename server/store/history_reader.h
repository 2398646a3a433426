// Answers questions to the history (core/history.h) from the tables of facts, on a read-only
// connection of its own.

#ifndef SERVER_STORE_HISTORY_READER_H_
#define SERVER_STORE_HISTORY_READER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "server/core/history.h"

namespace assay::store {

// A question that takes longer is ended: others wait meanwhile.
inline constexpr absl::Duration kHistoryTimeMax = absl::Seconds(2);
// Groups of one question, which are ordered in memory.
inline constexpr int64_t kHistoryGroupCountMax = 10'000;

// Each call sees all that was committed before it began. Not thread-safe, but may move between
// threads.
class HistoryReader {
 public:
  // The database has to exist: Store::Open makes it. `clock` must outlive the reader.
  static absl::StatusOr<std::unique_ptr<HistoryReader>> Open(const std::string& path,
                                                             const Clock* clock);
  ~HistoryReader();
  HistoryReader(const HistoryReader&) = delete;
  HistoryReader& operator=(const HistoryReader&) = delete;

  // INVALID_ARGUMENT, with the place and what would be right, for a filter, an order, columns,
  // groups or aggregates that are none, and for a page token that is not of this question.
  // RESOURCE_EXHAUSTED, with how to narrow it, after kHistoryTimeMax and for more than
  // kHistoryGroupCountMax groups.
  absl::StatusOr<core::HistoryAnswer> Ask(const core::HistoryQuestion& question);

  // How SQLite would find the rows and their number, a line per step, for tests.
  absl::StatusOr<std::vector<std::string>> ExplainPlan(const core::HistoryQuestion& question);

 private:
  struct Connection;
  explicit HistoryReader(std::unique_ptr<Connection> connection);
  const std::unique_ptr<Connection> connection_;
};

}  // namespace assay::store

#endif  // SERVER_STORE_HISTORY_READER_H_
