#include "server/runtime/token_table.h"

#include <utility>

namespace assay::runtime {

std::optional<core::Token> TokenTable::Find(absl::string_view secret_sha256) const {
  MutexLock lock(&mutex_);
  const auto it = by_hash_.find(secret_sha256);
  if (it == by_hash_.end()) return std::nullopt;
  return it->second;
}

void TokenTable::Replace(const std::map<core::TokenId, core::Token>& tokens) {
  absl::flat_hash_map<std::string, core::Token> by_hash;
  for (const auto& [id, token] : tokens)
    by_hash[token.secret_sha256] = token;
  MutexLock lock(&mutex_);
  by_hash_ = std::move(by_hash);
}

}  // namespace assay::runtime
