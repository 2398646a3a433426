// Somebody with a token, as a client of the coordinator: the certificate that a client of it needs
// is got with the token, and got again before it ends.

#ifndef SERVER_WEB_ACCOUNT_H_
#define SERVER_WEB_ACCOUNT_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/client/client.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/rpc/endpoint.h"

namespace assay::web {

// Thread-safe.
class Account {
 public:
  // `endpoint` has the coordinator, its CA and the token, which stays here. `clock` must outlive
  // it.
  Account(Endpoint endpoint, const Clock* clock);

  // The client, connected with a certificate that lasts a while yet. UNAUTHENTICATED if the
  // coordinator does not take the token (any more); UNAVAILABLE if it does not answer, which is
  // said again without asking for kPause. Blocks for as long as the coordinator takes to answer.
  absl::StatusOr<std::shared_ptr<const client::Client>> Client();

  // When the last certificate ends, which is when the token does; the past if there is none.
  absl::Time end() const;

 private:
  static constexpr absl::Duration kPause = absl::Seconds(1);
  // Near its certificate's end it is asked whether there is a later one, so often.
  static constexpr absl::Duration kLifeLeftMin = absl::Minutes(5);
  static constexpr absl::Duration kRenewPause = absl::Minutes(1);

  const Endpoint endpoint_;
  const Clock* const clock_;
  mutable Mutex mutex_;
  std::shared_ptr<const client::Client> client_ ABSL_GUARDED_BY(mutex_);
  absl::Time end_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // of its certificate
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  MonoTime asked_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace assay::web

#endif  // SERVER_WEB_ACCOUNT_H_
