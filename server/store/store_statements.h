// The writing connection with its prepared statements. Private to the store.

#ifndef SERVER_STORE_STORE_STATEMENTS_H_
#define SERVER_STORE_STORE_STATEMENTS_H_

#include <string>

#include "absl/status/status.h"

#include "server/store/facts.h"
#include "server/store/sqlite.h"
#include "server/store/store.h"

namespace assay::store {

struct Store::Statements {
  std::string path;
  Db db;
  Stmt insert_event, insert_run_event, upsert_submission, upsert_disclosure, upsert_run,
      upsert_node, insert_artifact, upsert_allocation, upsert_worker, upsert_dataset,
      delete_dataset, upsert_view, delete_view, upsert_token, insert_request, delete_request,
      insert_import, insert_borrowing, delete_borrowing, upsert_rates, upsert_passed, delete_passed,
      upsert_counter, select_submission, select_run, select_runs_of, select_nodes;
  FactWriter facts;

  absl::Status Prepare();
};

}  // namespace assay::store

#endif  // SERVER_STORE_STORE_STATEMENTS_H_
