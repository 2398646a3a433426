#include "server/store/head.h"

#include <string>

#include "common/status.h"
#include "server/store/chain.h"

namespace assay::store {
namespace {

constexpr char kSelectHead[] = "SELECT seq, chain FROM events ORDER BY seq DESC LIMIT 1";
constexpr char kSelectIdentity[] = "SELECT identity, is_marked FROM log_identity";
constexpr char kSelectHeadCounters[] = "SELECT name, value FROM counters";

}  // namespace

absl::StatusOr<Head> ReadHead(Db* db) {
  Head head;
  Mark& mark = head.mark;
  mark.chain = ChainStart();
  ASSIGN_OR_RETURN(Stmt select_identity, db->Prepare(kSelectIdentity));
  ASSIGN_OR_RETURN(bool is_row, select_identity.Step());
  if (!is_row) return absl::DataLossError("assay.db: table log_identity is empty");
  mark.identity = std::string(select_identity.Text(0));
  head.is_marked = select_identity.Int(1) != 0;
  select_identity.Rewind();
  ASSIGN_OR_RETURN(Stmt select_head, db->Prepare(kSelectHead));
  ASSIGN_OR_RETURN(is_row, select_head.Step());
  if (is_row) {
    mark.seq = select_head.Int(0);
    mark.chain = std::string(select_head.Text(1));
    select_head.Rewind();
  }
  ASSIGN_OR_RETURN(Stmt counters, db->Prepare(kSelectHeadCounters));
  while (true) {
    ASSIGN_OR_RETURN(is_row, counters.Step());
    if (!is_row) return head;
    if (counters.Text(0) == "last_submission") mark.last_submission = counters.Int(1);
    if (counters.Text(0) == "last_run") mark.last_run = counters.Int(1);
    if (counters.Text(0) == "last_token") mark.last_token = counters.Int(1);
  }
}

}  // namespace assay::store
