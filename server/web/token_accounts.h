// The accounts of programs, by the tokens that they send with each request.

#ifndef SERVER_WEB_TOKEN_ACCOUNTS_H_
#define SERVER_WEB_TOKEN_ACCOUNTS_H_

#include <cstddef>
#include <list>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"

#include "common/clock.h"
#include "common/mutex.h"
#include "common/rpc/endpoint.h"
#include "server/web/account.h"

namespace assay::web {

// Thread-safe. What is kept are the tokens' hashes, and connections made with them.
class TokenAccounts {
 public:
  static constexpr size_t kCountMax = 256;  // the one that was used longest ago goes

  // `coordinator` has no token. `clock` must outlive it.
  TokenAccounts(Endpoint coordinator, const Clock* clock)
      : coordinator_(std::move(coordinator)), clock_(clock) {}

  // The client of the token's owner. Errors of Account::Client; tokens that the coordinator does
  // not take are not kept. Blocks if the token is new.
  absl::StatusOr<std::shared_ptr<const client::Client>> ClientOf(const std::string& token);

 private:
  struct Entry {
    std::string token_sha256;
    std::shared_ptr<Account> account;
  };

  std::shared_ptr<Account> Find(const std::string& token_sha256);
  void Keep(Entry entry);

  const Endpoint coordinator_;
  const Clock* const clock_;
  Mutex mutex_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // the one used last first
};

}  // namespace assay::web

#endif  // SERVER_WEB_TOKEN_ACCOUNTS_H_
