// Brings back into memory what a command is about and only the store has.

#ifndef SERVER_STORE_RESTORE_H_
#define SERVER_STORE_RESTORE_H_

#include "absl/status/status.h"

#include "server/core/core.h"
#include "server/store/core_store.h"

namespace assay::store {

// To be called right before `core` handles `command`. Of what cannot be read, the command is told.
absl::Status RestoreFor(const core::Command& command, CoreStore* store, core::Core* core);

}  // namespace assay::store

#endif  // SERVER_STORE_RESTORE_H_
