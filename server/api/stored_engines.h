// Gives a run that replaces another the engines which that one's GPUs computed with.

#ifndef SERVER_API_STORED_ENGINES_H_
#define SERVER_API_STORED_ENGINES_H_

#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"

#include "server/api/services.h"
#include "server/core/types.h"

namespace assay::api {

// Calls `done` once, perhaps before it returns, with the text of the artifact `engines` for `run`;
// empty where there is none, and where it cannot be read: then the run chooses anew, and the log
// says why. `backend` must outlive the call.
void WithStoredEngines(const Backend* backend, core::RunId run,
                       const std::optional<core::ArtifactRef>& engines,
                       absl::AnyInvocable<void(std::string)> done);

}  // namespace assay::api

#endif  // SERVER_API_STORED_ENGINES_H_
