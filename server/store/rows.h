// Reading rows that both the writer's Load and the readers' queries need. Private to the store.

#ifndef SERVER_STORE_ROWS_H_
#define SERVER_STORE_ROWS_H_

#include <vector>

#include "absl/status/statusor.h"

#include "server/core/types.h"
#include "server/store/sqlite.h"

namespace assay::store {

// Nodes of one run, ordered by rank. Parameter: the run's number.
inline constexpr char kSelectNodes[] =
    "SELECT worker, phase, exit_code, reason, is_lost, is_released, last_seq, "
    "clock_offset_us, clock_offset_uncertainty_us, first_touch_us, "
    "observed_touch_us FROM run_nodes WHERE run_id = ?1 ORDER BY node_rank";

// Runs `select_nodes` (kSelectNodes) and fills in run->nodes.
absl::Status ReadNodes(Stmt* select_nodes, core::Run* run);

// The run in column `column` of the present row of `stmt`, with its nodes.
absl::StatusOr<core::Run> ReadRun(const Stmt& stmt, int column, Stmt* select_nodes);

}  // namespace assay::store

#endif  // SERVER_STORE_ROWS_H_
