// The connection that copies the write-ahead log beside the writer; declared in store.h.

#include <memory>
#include <string>
#include <utility>

#include "common/status.h"
#include "server/store/sqlite.h"
#include "server/store/store.h"

namespace assay::store {

namespace {

// While one pass copies, commits go on; each pass finds less than the one before.
constexpr int kPassesMax = 5;

}  // namespace

struct Checkpointer::Connection {
  Db db;
};

Checkpointer::Checkpointer(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)) {}
Checkpointer::~Checkpointer() = default;

absl::StatusOr<std::unique_ptr<Checkpointer>> Checkpointer::Open(const std::string& path) {
  auto connection = std::make_unique<Connection>();
  ASSIGN_OR_RETURN(connection->db, Db::Open(path, OpenMode::kReadWriteCreate));
  return std::unique_ptr<Checkpointer>(new Checkpointer(std::move(connection)));
}

absl::StatusOr<int64_t> Checkpointer::Run() {
  Db& db = connection_->db;
  for (int pass = 0; pass < kPassesMax; ++pass) {
    RETURN_IF_ERROR(db.Checkpoint());
    if (db.uncopied_frames() < kFewFrames) break;
  }
  return db.uncopied_frames();
}

}  // namespace assay::store
