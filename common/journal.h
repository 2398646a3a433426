// Records for systemd's journal with fields of their own, by its native protocol: datagrams of
// KEY=value lines (systemd.io/JOURNAL_NATIVE_PROTOCOL).

#ifndef COMMON_JOURNAL_H_
#define COMMON_JOURNAL_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace assay {

// Where journald listens.
inline constexpr char kJournalSocket[] = "/run/systemd/journal/socket";

// By name: {"ASSAY_RUN", "r-7"}.
using JournalFields = std::vector<std::pair<std::string, std::string>>;

// What a record in logfmt (log.h) says of a run, an entry and a node: "run=runs/r-7" is ASSAY_RUN,
// r-7; "submission=" and "entry=" are ASSAY_ENTRY, "worker=" and "node=" ASSAY_NODE; the first of
// each counts. What stands between quotation marks is no field. Pure.
JournalFields FieldsOf(absl::string_view record);

// Gives the journal a record. False if it cannot be given, and nothing has happened: nobody listens
// at `socket_path`, or it is too long for a datagram. Values must be one line. Thread-safe; waits
// as long as the journal's queue is full, as a write to its stream does.
bool SendToJournal(const std::string& socket_path, const JournalFields& fields);

}  // namespace assay

#endif  // COMMON_JOURNAL_H_
