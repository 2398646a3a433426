// The tokens as of the last commit, for authentication: looked up on any thread, without waiting.

#ifndef SERVER_RUNTIME_TOKEN_TABLE_H_
#define SERVER_RUNTIME_TOKEN_TABLE_H_

#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "common/mutex.h"
#include "server/core/types.h"

namespace assay::runtime {

// Thread-safe.
class TokenTable {
 public:
  // The token whose secret has this SHA-256 (hexadecimal); also if revoked or expired: the caller
  // looks. nullopt if there is none.
  std::optional<core::Token> Find(absl::string_view secret_sha256) const;

  // Takes over all tokens of a committed state.
  void Replace(const std::map<core::TokenId, core::Token>& tokens);

 private:
  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, core::Token> by_hash_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_TOKEN_TABLE_H_
