#include "server/web/token_accounts.h"

#include <algorithm>
#include <utility>

#include "common/secret.h"
#include "common/status.h"

namespace assay::web {

absl::StatusOr<std::shared_ptr<const client::Client>> TokenAccounts::ClientOf(
    const std::string& token) {
  const std::string sha256 = TokenHash(token);
  if (const std::shared_ptr<Account> known = Find(sha256); known != nullptr) return known->Client();
  Endpoint endpoint = coordinator_;
  endpoint.token = token;
  const auto account = std::make_shared<Account>(std::move(endpoint), clock_);
  ASSIGN_OR_RETURN(std::shared_ptr<const client::Client> client, account->Client());
  Keep({.token_sha256 = sha256, .account = account});
  return client;
}

std::shared_ptr<Account> TokenAccounts::Find(const std::string& token_sha256) {
  const MutexLock lock(&mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.token_sha256 == token_sha256;
  });
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return entries_.front().account;
}

void TokenAccounts::Keep(Entry entry) {
  const MutexLock lock(&mutex_);
  entries_.push_front(std::move(entry));
  if (entries_.size() > kCountMax) entries_.pop_back();
}

}  // namespace assay::web
