#include "server/store/rows.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/store/codec.h"
#include "server/store/json_archive.h"

namespace assay::store {

absl::Status ReadNodes(Stmt* select_nodes, core::Run* run) {
  RETURN_IF_ERROR(select_nodes->Bind(run->id.number));
  while (true) {
    ASSIGN_OR_RETURN(const bool is_row, select_nodes->Step());
    if (!is_row) return absl::OkStatus();
    core::RunNode node;
    node.worker = std::string(select_nodes->Text(0));
    const std::optional<core::NodePhase> phase = ParseEnum<core::NodePhase>(select_nodes->Text(1));
    if (!phase.has_value())
      return absl::DataLossError(absl::StrCat("run ", run->id.ToString(), " has a bad phase"));
    node.phase = *phase;
    node.exit_code = static_cast<int32_t>(select_nodes->Int(2));
    node.reason = std::string(select_nodes->Text(3));
    node.is_lost = select_nodes->Int(4) != 0;
    node.is_released = select_nodes->Int(5) != 0;
    node.last_seq = select_nodes->Int(6);
    node.clock_offset_us = select_nodes->Int(7);
    node.clock_offset_uncertainty_us = select_nodes->Int(8);
    if (!select_nodes->IsNull(9)) node.first_touch_us = select_nodes->Int(9);
    if (!select_nodes->IsNull(10)) node.observed_touch_us = select_nodes->Int(10);
    run->nodes.push_back(std::move(node));
  }
}

absl::StatusOr<core::Run> ReadRun(const Stmt& stmt, int column, Stmt* select_nodes) {
  ASSIGN_OR_RETURN(core::Run run, DecodeRun(stmt.Text(column)));
  RETURN_IF_ERROR(ReadNodes(select_nodes, &run));
  return run;
}

}  // namespace assay::store
