#include "common/munge/munge.h"

#include <arpa/inet.h>
#include <munge.h>
#include <netinet/in.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/status.h"

namespace assay {
namespace {

// An agent asks right after it has made one; clocks may differ by as much.
constexpr int kLifetimeSeconds = 60;

using Context = std::unique_ptr<munge_ctx, void (*)(munge_ctx_t)>;
using Buffer = std::unique_ptr<void, void (*)(void*)>;

absl::StatusOr<Context> MakeContext(const std::string& socket) {
  Context context(munge_ctx_create(), munge_ctx_destroy);
  if (context == nullptr) return absl::ResourceExhaustedError("munge: out of memory");
  if (!socket.empty() &&
      munge_ctx_set(context.get(), MUNGE_OPT_SOCKET, socket.c_str()) != EMUNGE_SUCCESS)
    return absl::InvalidArgumentError(
        absl::StrCat("munge_socket: \"", socket, "\": ", munge_ctx_strerror(context.get())));
  return context;
}

std::string WordsOf(munge_ctx_t context, munge_err_t error) {
  const char* const words = munge_ctx_strerror(context);
  return words != nullptr ? words : munge_strerror(error);
}

std::string SocketOf(munge_ctx_t context) {
  const char* socket = nullptr;
  if (munge_ctx_get(context, MUNGE_OPT_SOCKET, &socket) != EMUNGE_SUCCESS || socket == nullptr)
    return "its socket";
  return socket;
}

// munged does not do its part, on the host where this runs.
absl::Status Silent(munge_ctx_t context, munge_err_t error) {
  return absl::UnavailableError(absl::StrCat(
      "munge at ", SocketOf(context), ": ", WordsOf(context, error),
      ": see that munged runs on this host (systemctl status munge), or set slurm.munge_socket"));
}

std::string TimeOf(munge_ctx_t context, munge_opt_t which) {
  time_t time = 0;
  if (munge_ctx_get(context, which, &time) != EMUNGE_SUCCESS) return "an unknown time";
  return absl::FormatTime("%H:%M:%S", absl::FromTimeT(time), absl::UTCTimeZone());
}

// What to do about a credential that cannot be accepted; empty: nothing is known to help.
std::string RemedyOf(munge_ctx_t context, munge_err_t error) {
  switch (error) {
    case EMUNGE_CRED_EXPIRED:
    case EMUNGE_CRED_REWOUND:
      return absl::StrCat("made at ", TimeOf(context, MUNGE_OPT_ENCODE_TIME), " UTC, opened at ",
                          TimeOf(context, MUNGE_OPT_DECODE_TIME),
                          " UTC: it serves for a minute; set the clocks of both hosts (chronyc "
                          "tracking)");
    case EMUNGE_CRED_INVALID:
    case EMUNGE_BAD_REALM:
      return "give the node and the coordinator's host the same /etc/munge/munge.key, and restart "
             "munged";
    case EMUNGE_CRED_UNAUTHORIZED:
      return "it is for another user: give the service's user the same number on the node and on "
             "the coordinator's host";
    case EMUNGE_CRED_REPLAYED:
      return "it was shown before, and serves once";
    default:
      return "it is no credential that the munged of this host knows";
  }
}

bool IsOfDaemon(munge_err_t error) {
  return error == EMUNGE_SOCKET || error == EMUNGE_TIMEOUT || error == EMUNGE_NO_MEMORY ||
         error == EMUNGE_SNAFU;
}

std::string AddressOf(munge_ctx_t context) {
  in_addr address{};
  std::array<char, INET_ADDRSTRLEN> text{};
  if (munge_ctx_get(context, MUNGE_OPT_ADDR4, &address) != EMUNGE_SUCCESS ||
      inet_ntop(AF_INET, &address, text.data(), text.size()) == nullptr)
    return "";
  return text.data();
}

}  // namespace

absl::StatusOr<std::string> MungeEncode(const std::string& socket, uid_t reader,
                                        const std::string& payload) {
  ASSIGN_OR_RETURN(const Context context, MakeContext(socket));
  munge_err_t error = munge_ctx_set(context.get(), MUNGE_OPT_TTL, kLifetimeSeconds);
  if (error == EMUNGE_SUCCESS)
    error = munge_ctx_set(context.get(), MUNGE_OPT_UID_RESTRICTION, reader);
  char* made = nullptr;
  if (error == EMUNGE_SUCCESS)
    error = munge_encode(&made, context.get(), payload.data(), static_cast<int>(payload.size()));
  const Buffer owner(made, std::free);
  if (error != EMUNGE_SUCCESS) return Silent(context.get(), error);
  return std::string(made);
}

absl::StatusOr<MungeCredential> MungeDecode(const std::string& socket,
                                            const std::string& credential) {
  ASSIGN_OR_RETURN(const Context context, MakeContext(socket));
  void* data = nullptr;
  int length = 0;
  MungeCredential opened;
  gid_t group = 0;
  const munge_err_t error =
      munge_decode(credential.c_str(), context.get(), &data, &length, &opened.uid, &group);
  const Buffer owner(data, std::free);
  if (IsOfDaemon(error)) return Silent(context.get(), error);
  if (error != EMUNGE_SUCCESS)
    return absl::PermissionDeniedError(absl::StrCat("munge: ", WordsOf(context.get(), error), ": ",
                                                    RemedyOf(context.get(), error)));
  if (data != nullptr)
    opened.payload.assign(static_cast<const char*>(data), static_cast<size_t>(length));
  opened.address = AddressOf(context.get());
  return opened;
}

}  // namespace assay
