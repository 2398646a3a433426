// Codes by which a browser signs in to the site: made for whoever is known here, used once, for a
// minute.

#ifndef SERVER_API_WEB_CODES_H_
#define SERVER_API_WEB_CODES_H_

#include <list>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/mutex.h"
#include "server/auth/identity.h"

namespace assay::api {

// Thread-safe. Codes are in memory alone, as their hashes: a restart forgets them.
class WebCodes {
 public:
  static constexpr absl::Duration kLifetime = absl::Seconds(60);
  // At a time; of one principal, and of all. The oldest goes before a new one.
  static constexpr size_t kOfPrincipalMax = 5;
  static constexpr size_t kAllMax = 1000;

  // `clock` must outlive it.
  explicit WebCodes(const Clock* clock) : clock_(clock) {}

  // A code that stands for `identity`: 160 random bits, as a token has.
  std::string Create(const auth::Identity& identity);

  // Uses up `code`. Whom it stands for; nullopt if it is unknown, used or too old.
  std::optional<auth::Identity> Redeem(const std::string& code);

 private:
  struct Entry {
    std::string sha256;
    auth::Identity identity;
    MonoTime made_at;
  };

  // What is past its time, and the oldest ones that leave no room for one more of `principal`.
  void MakeRoom(const std::string& principal) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  Mutex mutex_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // the oldest first
};

}  // namespace assay::api

#endif  // SERVER_API_WEB_CODES_H_
