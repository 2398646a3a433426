// The chain of hashes (chain.h) as it is in the tables. Private to the store.

#ifndef SERVER_STORE_CHAIN_ROWS_H_
#define SERVER_STORE_CHAIN_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/core/types.h"
#include "server/store/chain.h"
#include "server/store/sqlite.h"

namespace assay::store {

// Events after ?1, oldest first.
inline constexpr char kSelectChainedEvents[] =
    "SELECT seq, at_us, type, version, principal, COALESCE(submission_id, 0), COALESCE(run_id, 0), "
    "is_change, body, lines, chain FROM events WHERE seq > ?1 ORDER BY seq";
// Lines of run ?1 with ordinals ?2 to ?3.
inline constexpr char kSelectChainedLines[] =
    "SELECT ordinal, node_rank, seq, kind, line, text, wall_us, mono_ns, receive_us, "
    "COALESCE(finding, ''), is_late, is_attributed FROM run_events "
    "WHERE run_id = ?1 AND ordinal BETWEEN ?2 AND ?3 ORDER BY ordinal";

// The present row of kSelectChainedEvents; its texts live until the next step.
ChainedEvent ReadChainedEvent(const Stmt& stmt);

// The seal of lines `first_ordinal` to `first_ordinal + count - 1` as they are in the table now;
// its count is that of the rows found. `select_lines` is kSelectChainedLines.
absl::StatusOr<LinesSeal> SealStoredLines(Stmt* select_lines, int64_t run, int64_t first_ordinal,
                                          int64_t count);

// The seal of lines that are about to be stored.
LinesSeal SealOf(const std::vector<core::RunEvent>& events);

// Fills in the columns `lines` and `chain` of all events, within a transaction of the caller: what
// migration 0004 leaves to be done. DATA_LOSS if an event cannot be read.
absl::Status ChainStoredEvents(Db* db);

}  // namespace assay::store

#endif  // SERVER_STORE_CHAIN_ROWS_H_
