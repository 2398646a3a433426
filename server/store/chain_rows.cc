#include "server/store/chain_rows.h"

#include <map>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/core/event.h"
#include "server/store/codec.h"

namespace assay::store {
namespace {

// As kSelectChainedLines, with what later migrations make of columns that are not there yet.
constexpr char kSelectOlderLines[] =
    "SELECT ordinal, node_rank, seq, kind, line, text, wall_us, mono_ns, receive_us, "
    "COALESCE(finding, ''), 0, kind = 1 FROM run_events WHERE run_id = ?1 AND ordinal BETWEEN ?2 "
    "AND ?3 "
    "ORDER BY ordinal";
constexpr char kUpdateChain[] = "UPDATE events SET lines = ?2, chain = ?3 WHERE seq = ?1";

// Which lines the event is about; a count of 0 if it is about none. `next` is the ordinal that
// follows, by run: ordinals were given in the order of the events.
absl::StatusOr<LinesSeal> RangeOf(const ChainedEvent& event, std::map<int64_t, int64_t>* next) {
  if (event.type != core::RunEventsAppended::kType) return LinesSeal{};
  ASSIGN_OR_RETURN(const core::Event decoded,
                   DecodeEvent(event.type, static_cast<int>(event.version), event.body));
  const auto& appended = std::get<core::RunEventsAppended>(decoded);
  int64_t& ordinal = next->try_emplace(event.run, 1).first->second;
  const LinesSeal range = {.first_ordinal = ordinal,
                           .count = appended.last_seq - appended.first_seq + 1};
  ordinal += range.count;
  return range;
}

}  // namespace

ChainedEvent ReadChainedEvent(const Stmt& stmt) {
  return {.seq = stmt.Int(0),
          .at_us = stmt.Int(1),
          .type = stmt.Text(2),
          .version = stmt.Int(3),
          .principal = stmt.Text(4),
          .submission = stmt.Int(5),
          .run = stmt.Int(6),
          .is_change = stmt.Int(7) != 0,
          .body = stmt.Text(8),
          .lines = stmt.Text(9)};
}

absl::StatusOr<LinesSeal> SealStoredLines(Stmt* select_lines, int64_t run, int64_t first_ordinal,
                                          int64_t count) {
  RETURN_IF_ERROR(select_lines->Bind(run, first_ordinal, first_ordinal + count - 1));
  LinesSealer sealer;
  while (true) {
    ASSIGN_OR_RETURN(const bool is_row, select_lines->Step());
    if (!is_row) return sealer.Finish();
    sealer.Add({.ordinal = select_lines->Int(0),
                .node_rank = select_lines->Int(1),
                .seq = select_lines->Int(2),
                .kind = select_lines->Int(3),
                .line = select_lines->Int(4),
                .text = select_lines->Text(5),
                .wall_us = select_lines->Int(6),
                .mono_ns = select_lines->Int(7),
                .receive_us = select_lines->Int(8),
                .finding = select_lines->Text(9),
                .is_late = select_lines->Int(10) != 0,
                .is_attributed = select_lines->Int(11) != 0});
  }
}

absl::Status ChainStoredEvents(Db* db) {
  ASSIGN_OR_RETURN(Stmt select, db->Prepare(absl::StrCat(kSelectChainedEvents, " LIMIT 1")));
  ASSIGN_OR_RETURN(Stmt select_lines, db->Prepare(kSelectOlderLines));
  ASSIGN_OR_RETURN(Stmt update, db->Prepare(kUpdateChain));
  std::string chain = ChainStart();
  std::map<int64_t, int64_t> next_ordinals;
  for (int64_t seq = 0;;) {
    RETURN_IF_ERROR(select.Bind(seq));
    ASSIGN_OR_RETURN(const bool is_row, select.Step());
    if (!is_row) return absl::OkStatus();
    ChainedEvent event = ReadChainedEvent(select);
    seq = event.seq;
    ASSIGN_OR_RETURN(const LinesSeal range, RangeOf(event, &next_ordinals));
    std::string lines;
    if (range.count > 0) {
      ASSIGN_OR_RETURN(const LinesSeal seal,
                       SealStoredLines(&select_lines, event.run, range.first_ordinal, range.count));
      if (seal.count != range.count || seal.first_ordinal != range.first_ordinal)
        return absl::DataLossError(absl::StrCat("event ", seq, " is about ", range.count,
                                                " lines of run r-", event.run, ", of which ",
                                                seal.count, " are there"));
      lines = Encode(seal);
    }
    event.lines = lines;
    chain = ChainHash(chain, event);
    select.Rewind();
    RETURN_IF_ERROR(update.Run(seq, Blob{lines}, Blob{chain}));
  }
}

LinesSeal SealOf(const std::vector<core::RunEvent>& events) {
  LinesSealer sealer;
  for (const core::RunEvent& event : events) {
    const std::string finding = event.finding.has_value() ? Encode(*event.finding) : "";
    sealer.Add({.ordinal = event.order,
                .node_rank = event.node_rank,
                .seq = event.seq,
                .kind = static_cast<int>(event.kind),
                .line = event.line,
                .text = event.text,
                .wall_us = event.wall_us,
                .mono_ns = event.mono_ns,
                .receive_us = event.receive_us,
                .finding = finding,
                .is_late = event.is_late,
                .is_attributed = event.is_attributed});
  }
  return sealer.Finish();
}

}  // namespace assay::store
