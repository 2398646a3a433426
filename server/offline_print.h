// What assayd prints about what is kept where no daemon runs: lines of text, or a JSON object a
// line as the API has it.

#ifndef SERVER_OFFLINE_PRINT_H_
#define SERVER_OFFLINE_PRINT_H_

#include <cstdint>
#include <ostream>

#include "server/core/query.h"

namespace assay {

struct OfflineOutput {
  bool is_json = false;
  std::ostream* out = nullptr;
  std::ostream* terminal = nullptr;  // where a line may be redrawn; null: nowhere
};

// How many of the artifacts are done, on one line that is redrawn a hundred times at most. Ends the
// line with the last.
void DrawProgress(int64_t done_count, int64_t artifact_count, const OfflineOutput& output);

void PrintFault(const core::StoredFault& fault, const OfflineOutput& output);
void PrintVerified(const core::VerifyCounts& counts, int64_t fault_count,
                   const OfflineOutput& output);
// A backup that was made, or that was put back.
void PrintBackedUp(const core::BackupCounts& counts, int64_t fault_count,
                   const OfflineOutput& output);
void PrintRestored(const core::BackupCounts& counts, int64_t fault_count,
                   const OfflineOutput& output);

}  // namespace assay

#endif  // SERVER_OFFLINE_PRINT_H_
