// How a trainer process ends: the only thing the agent learns from it besides its files.
//
// One table, shared by assay-train (which exits), assay-worker (which reports) and the coordinator
// (which explains). Values are part of the product: scripts read them. Never renumber.

#ifndef COMMON_EXIT_CODE_H_
#define COMMON_EXIT_CODE_H_

#include "absl/strings/string_view.h"

namespace assay {

enum class ExitCode : int {
  kOk = 0,               // ran to its end; whether it converged is in the log
  kInternal = 1,         // a bug of ours
  kBadSpec = 2,          // the run spec is unreadable or inconsistent
  kBadData = 3,          // the dataset is missing, damaged or does not divide by the ranks
  kCommLost = 4,         // a peer went away or a collective passed its deadline
  kBackend = 5,          // the compute backend failed (library error, device lost)
  kOutOfMemory = 6,      // an allocation failed
  kNumeric = 7,          // loss or a weight is no longer finite
  kDisk = 8,             // the log or the staging area cannot be written
  kTerminated = 9,       // asked to stop (SIGTERM) and did
  kNodeFailed = 10,      // the node lost the run: no trainer ever gives this
  kIntruder = 11,        // a message that no rank of the run sent
  kDiverged = 12,        // the ranks' parameters are not the same
  kProgram = 13,         // somebody else's program failed: its own codes are not ours
  kUnknownSignal = 128,  // plus the signal's number, as a shell reports it
};

// The last one that a trainer ends with by itself.
inline constexpr ExitCode kLastExitCode = ExitCode::kDiverged;

// A sentence for people. Codes above 128 name the signal family.
inline absl::string_view Describe(ExitCode code) {
  switch (code) {
    case ExitCode::kOk:
      return "finished";
    case ExitCode::kInternal:
      return "internal error in the trainer";
    case ExitCode::kBadSpec:
      return "the run spec is unreadable or inconsistent";
    case ExitCode::kBadData:
      return "the dataset is missing, damaged or not divisible by the ranks";
    case ExitCode::kCommLost:
      return "lost contact with another rank";
    case ExitCode::kBackend:
      return "the compute backend failed";
    case ExitCode::kOutOfMemory:
      return "out of memory";
    case ExitCode::kNumeric:
      return "loss or weights are no longer finite";
    case ExitCode::kDisk:
      return "cannot write the log or the staging area";
    case ExitCode::kTerminated:
      return "stopped on request";
    case ExitCode::kNodeFailed:
      return "the node lost the run";
    case ExitCode::kIntruder:
      return "somebody who is no rank of this run sends messages to its ranks";
    case ExitCode::kDiverged:
      return "the ranks' parameters are not the same to the last bit";
    case ExitCode::kProgram:
      return "the program failed";
    case ExitCode::kUnknownSignal:
      return "killed by a signal";
  }
  return "killed by a signal";
}

}  // namespace assay

#endif  // COMMON_EXIT_CODE_H_
