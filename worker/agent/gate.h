// The gate: a process of its own that holds the first reader of a dataset back until it has looked
// at what could have been read past every other witness: memory and devices. It is not the step,
// because whoever waits for its answer waits in the kernel: it opens nothing of the dataset once it
// is closed, lets everybody in who is not of the run, ends with the first reader of the run, and
// whoever ends it opens it. reader_gate.h is the step's side.

#ifndef WORKER_AGENT_GATE_H_
#define WORKER_AGENT_GATE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace assay::agent {

inline constexpr char kGateMode[] = "gate";

// What it sends through kInheritedFd, a socket that keeps messages apart: kGateClosed once, then
// kGateBeat ten times a second, then the record of the reader as JSON (gate_record.h) and nothing
// more. kGateRefused and why, if it cannot be closed.
inline constexpr absl::string_view kGateClosed = "closed";
inline constexpr absl::string_view kGateBeat = "beat";
inline constexpr absl::string_view kGateRefused = "refused ";
inline constexpr absl::Duration kGateBeatInterval = absl::Milliseconds(100);
inline constexpr size_t kGateMessageBytesMax = 16 << 10;

// What it guards: files that are there, which nobody may open, or what is staged into folders,
// which nobody may read; who writes there is not held.
inline constexpr absl::string_view kGateOfDataset = "dataset";
inline constexpr absl::string_view kGateOfCopies = "copies";

// What assay-worker does with its arguments after kGateMode: the number of the process whose
// descendants are of the run, the file that drops inodes (empty: none), what it guards, and the
// folders of samples. Needs CAP_SYS_ADMIN. Returns the code to exit with.
int RunGate(const std::vector<std::string>& arguments);

}  // namespace assay::agent

#endif  // WORKER_AGENT_GATE_H_
