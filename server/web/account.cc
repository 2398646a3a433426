#include "server/web/account.h"

#include <utility>

#include "common/client/certificate.h"
#include "common/pki.h"
#include "common/status.h"

namespace assay::web {
namespace {

struct Connected {
  std::shared_ptr<const client::Client> client;
  absl::Time end;
};

absl::StatusOr<Connected> ConnectAs(const Endpoint& endpoint, absl::Time now) {
  // No cache on disk: a site keeps its visitors' keys in memory alone.
  ASSIGN_OR_RETURN(const Endpoint certified,
                   client::WithCertificate("", now, endpoint, client::Patience::kNone));
  Connected connected;
  ASSIGN_OR_RETURN(connected.end, NotAfter(certified.certificate_pem));
  ASSIGN_OR_RETURN(connected.client, client::Client::Connect(certified));
  return connected;
}

}  // namespace

Account::Account(Endpoint endpoint, const Clock* clock)
    : endpoint_(std::move(endpoint)), clock_(clock) {}

absl::StatusOr<std::shared_ptr<const client::Client>> Account::Client() {
  const MutexLock lock(&mutex_);
  const absl::Time now = clock_->Wall();
  const absl::Duration since = clock_->Mono() - asked_at_;
  const bool is_connected = client_ != nullptr && end_ > now;
  if (is_connected && (end_ - now > kLifeLeftMin || since < kRenewPause)) return client_;
  if (!failure_.ok() && since < kPause) return failure_;
  absl::StatusOr<Connected> connected = ConnectAs(endpoint_, now);
  failure_ = connected.status();
  asked_at_ = clock_->Mono();
  RETURN_IF_ERROR(failure_);
  client_ = connected->client;
  end_ = connected->end;
  return client_;
}

absl::Time Account::end() const {
  const MutexLock lock(&mutex_);
  return end_;
}

}  // namespace assay::web
