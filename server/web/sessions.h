// Who has signed in: their sessions, and what proves that a form came from a page of theirs.

#ifndef SERVER_WEB_SESSIONS_H_
#define SERVER_WEB_SESSIONS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/mutex.h"
#include "server/web/account.h"
#include "server/web/page.h"

namespace assay::web {

struct Session {
  std::string id;   // 128 random bits as 32 hexadecimal digits; the cookie's value
  Visitor visitor;  // without a form token
  std::shared_ptr<Account> account;
  MonoTime end;
  MonoTime used_at;
};

// Thread-safe. In memory alone: a restart signs everybody out.
class Sessions {
 public:
  static constexpr absl::Duration kLifetimeMax = absl::Hours(12);  // a working day
  // At a time; the one that was used longest ago goes before a new one.
  static constexpr size_t kOfPrincipalMax = 16;
  static constexpr size_t kAllMax = 512;

  // `clock` must outlive it.
  explicit Sessions(const Clock* clock) : clock_(clock) {}

  // A new session for kLifetimeMax, or until `token_end` (wall clock) if that is sooner. Its id.
  std::string Open(Visitor visitor, std::shared_ptr<Account> account, absl::Time token_end);

  // The session of that id; null if there is none, or it has ended.
  std::shared_ptr<const Session> Find(absl::string_view id);

  void Close(absl::string_view id);

  size_t size() const;

 private:
  using Table = std::map<std::string, std::shared_ptr<Session>, std::less<>>;
  void MakeRoom(const std::string& principal) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  mutable Mutex mutex_;
  Table table_ ABSL_GUARDED_BY(mutex_);
};

// Tokens of forms: a code of authentication over what the browser has as a cookie, under a key of
// this process. Thread-safe.
class FormTokens {
 public:
  FormTokens();

  // A token for pages that are sent to the browser with this cookie. Different each time, so that
  // the size of compressed pages says nothing about it (the attack BREACH, 2013).
  std::string Make(absl::string_view cookie) const;

  // Whether Make(cookie) has made `token`. Takes equally long for all of one length.
  bool Check(absl::string_view cookie, absl::string_view token) const;

 private:
  std::string Code(absl::string_view cookie) const;

  const std::string key_;
};

// The value of the cookie `name` in a Cookie header, if it is 32 hexadecimal digits as all of ours
// are; empty otherwise.
std::string CookieValue(absl::string_view header, absl::string_view name);

// 128 random bits as 32 hexadecimal digits.
std::string MakeCookieValue();

}  // namespace assay::web

#endif  // SERVER_WEB_SESSIONS_H_
