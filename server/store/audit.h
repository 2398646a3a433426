// Which events of the log the audit shows, and how it is asked.

#ifndef SERVER_STORE_AUDIT_H_
#define SERVER_STORE_AUDIT_H_

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "server/core/event.h"
#include "server/core/query.h"
#include "server/store/sqlite.h"

namespace assay::store {

// What people did or must know, for the audit; the rest is what runs and workers do by themselves.
struct IsChange {
  template <typename E>
  bool operator()(const E&) const {
    return !(std::is_same_v<E, core::RunEventsAppended> || std::is_same_v<E, core::NodeStarted> ||
             std::is_same_v<E, core::NodeFinished> || std::is_same_v<E, core::RunStarted> ||
             std::is_same_v<E, core::RunAssigned> || std::is_same_v<E, core::RunUploaded> ||
             std::is_same_v<E, core::ArtifactRecorded> || std::is_same_v<E, core::WorkerReleased> ||
             std::is_same_v<E, core::WorkerDescribed> || std::is_same_v<E, core::WorkerForgotten> ||
             std::is_same_v<E, core::WorkerJoined> || std::is_same_v<E, core::PreflightStarted> ||
             std::is_same_v<E, core::AllocationGranted> ||
             std::is_same_v<E, core::CacheOrderPostponed> ||
             std::is_same_v<E, core::CacheOrderRetried> ||
             std::is_same_v<E, core::AllocationSubmitted> ||
             std::is_same_v<E, core::AllocationActivated> ||
             std::is_same_v<E, core::TokensForgotten> ||
             std::is_same_v<E, core::RequestsForgotten> ||
             std::is_same_v<E, core::SubmissionCheckStarted>);
  }
};

struct SqlQuestion {
  std::string sql;
  std::vector<SqlValue> values;  // of its parameters, in order
};

// Columns: seq, at_us, type, version, principal, submission_id, run_id, body, object, detail; at
// most `limit` rows. Along the index of changes, or an entry's events.
SqlQuestion AuditSql(const core::AuditQuestion& audit, int32_t limit);

}  // namespace assay::store

#endif  // SERVER_STORE_AUDIT_H_
