// Entries or runs beside each other: what differs between them.

#ifndef COMMON_CLIENT_COMPARISON_H_
#define COMMON_CLIENT_COMPARISON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "common/client/client.h"
#include "common/client/json.h"

namespace assay::client {

// The JSON of the entries (e-42) or runs (r-901) that `ids`, which is not empty, names, in its
// order; entries with the energy to solution of their scores, both with the bill of materials of a
// program ("materials"). INVALID_ARGUMENT if some are entries
// and some are runs; else the errors of GetEntry and GetRun. Blocks. Thread-safe.
absl::StatusOr<std::vector<Json>> ReadForComparison(const Client& client,
                                                    const std::vector<std::string>& ids);

// One row per field that any of `resources` has: "field", and under each id what it has there, as
// text; nothing where it has no such field. Members of objects become rows of their own
// ("hyperparameters.opt_name"). Each row says whether its resources differ ("differs"). What every
// resource has for itself, ids and dates, is left out, and unless `is_all` rows in which all agree.
// Of two resources, rows of numbers have their ratio, the second's to the first's ("ratio"), and
// where less or more is better, whether the second is "better" or "worse" ("direction"). Pure.
Json CompareResources(const std::vector<std::string>& ids, const std::vector<Json>& resources,
                      bool is_all);

}  // namespace assay::client

#endif  // COMMON_CLIENT_COMPARISON_H_
