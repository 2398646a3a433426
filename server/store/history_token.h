// Page tokens of questions to the history: where a page ended, bound to the question.

#ifndef SERVER_STORE_HISTORY_TOKEN_H_
#define SERVER_STORE_HISTORY_TOKEN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "server/store/sqlite.h"

namespace assay::store {

struct HistoryToken {
  // As counted with the first page.
  int64_t total_count = 0;
  int64_t hidden_count = 0;
  std::vector<SqlValue> position;  // of the last row; of groups, how many came before
};

// `hash`: of the question (HistoryPlan::token_hash).
std::string WriteHistoryToken(const std::string& hash, const HistoryToken& token);

// INVALID_ARGUMENT if it is no token, or one of another question; with `value_count` values.
absl::StatusOr<HistoryToken> ReadHistoryToken(const std::string& hash, const std::string& text,
                                              size_t value_count);

}  // namespace assay::store

#endif  // SERVER_STORE_HISTORY_TOKEN_H_
