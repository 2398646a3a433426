// How far the event log of a database goes. Private to the store.

#ifndef SERVER_STORE_HEAD_H_
#define SERVER_STORE_HEAD_H_

#include "absl/status/statusor.h"

#include "server/store/mark.h"
#include "server/store/sqlite.h"

namespace assay::store {

struct Head {
  Mark mark;               // that belongs to the database; of the write-ahead log it says nothing
  bool is_marked = false;  // a mark was written for it once, so one has to be there
};

// DATA_LOSS if the database has no identity.
absl::StatusOr<Head> ReadHead(Db* db);

}  // namespace assay::store

#endif  // SERVER_STORE_HEAD_H_
