// Files that the nodes of a run have left beside its log.

#ifndef SERVER_RUNTIME_EVIDENCE_FILE_H_
#define SERVER_RUNTIME_EVIDENCE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/rules/run_clocks.h"
#include "common/telemetry/series.h"
#include "server/core/types.h"
#include "server/store/artifacts.h"

namespace assay::runtime {

// The file `name` of `run`. nullopt: there is none, it has more than `bytes_max` bytes, or it
// cannot be read, which is logged: a run is judged without.
std::optional<std::string> EvidenceOf(absl::string_view name, int64_t bytes_max,
                                      const core::Run& run, const store::ArtifactStore& artifacts);

// What `node` wrote down when it reset its caches (common/telemetry/cache_record.h); empty for what
// would be nullopt.
std::string CachesOf(int node, const core::Run& run, const store::ArtifactStore& artifacts);

// The clocks of the nodes of `run`, whose log says that it began at `run_start_ms`. Both arguments
// must outlive it.
rules::RunClocks ClocksOf(std::optional<int64_t> run_start_ms, const core::Run& run,
                          const store::ArtifactStore& artifacts);

// The telemetry of `node`, of which only columns whose names begin with one of `prefixes` are kept;
// on the clock of node 0 if `clocks` know that of this node. nullopt as before, and for what is
// none.
std::optional<telemetry::Series> TelemetryOf(size_t node, std::vector<std::string> prefixes,
                                             const rules::RunClocks& clocks, const core::Run& run,
                                             const store::ArtifactStore& artifacts);

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_EVIDENCE_FILE_H_
