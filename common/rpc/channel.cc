#include "common/rpc/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace assay {
namespace {

// A dead peer is noticed within 25 s even if its host vanished without a word. Less than the 20 s
// that an agent's call may be held, and more than the server lets clients ping.
constexpr int kKeepaliveTimeMs = 15'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
// Log batches are at most 1 MiB; imported logs are at most 64 MiB.
constexpr int kMessageBytesMax = 64 << 20;

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const Endpoint& endpoint) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A coordinator that restarts is back within a second: do not wait longer to look again.
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  // Proxies of the environment are for the web, not for a facility's own daemons.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (absl::StartsWith(endpoint.target, "unix:"))
    return grpc::CreateCustomChannel(endpoint.target, grpc::InsecureChannelCredentials(),
                                     arguments);
  if (endpoint.ca_pem.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no CA certificate for ", endpoint.target,
                     ": give the coordinator's ca.crt, or use its Unix socket"));
  }
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = endpoint.ca_pem;
  tls.pem_cert_chain = endpoint.certificate_pem;
  tls.pem_private_key = endpoint.key_pem;
  return grpc::CreateCustomChannel(endpoint.target, grpc::SslCredentials(tls), arguments);
}

void PrepareCall(const Endpoint& endpoint, absl::Duration timeout, grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  if (!endpoint.token.empty())
    context->AddMetadata("authorization", absl::StrCat("Bearer ", endpoint.token));
}

}  // namespace assay
