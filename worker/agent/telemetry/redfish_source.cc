// The meter of the node's own board, by Redfish over HTTPS. Its controller is verified, or not
// spoken to.

#include <curl/curl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/status.h"
#include "worker/agent/telemetry/asked_meter.h"
#include "worker/agent/telemetry/redfish_answer.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

using telemetry::MeterState;

constexpr size_t kBodyBytesMax = 1 << 20;
// Between two tries of credentials that were refused: controllers lock accounts that are tried
// often.
constexpr int64_t kRefusedPauseNs = 60'000'000'000;
constexpr long kHttpOk = 200;
constexpr long kHttpUnauthorized = 401;
constexpr long kHttpForbidden = 403;

struct EasyFree {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct ListFree {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

struct RedfishAccess {
  std::string user_password;  // user:password; empty: by token
  std::string token;
  std::string ca_pem;  // empty: whom the system trusts
};

absl::StatusOr<RedfishAccess> RedfishAccessOf(const RedfishOptions& options) {
  ASSIGN_OR_RETURN(auto secrets, ReadMeterSecrets(options.credentials_path));
  RedfishAccess access;
  access.token = secrets["token"];
  if (access.token.empty()) {
    if (secrets["user"].empty() || secrets["password"].empty())
      return absl::InvalidArgumentError(
          absl::StrCat(options.credentials_path,
                       " has neither \"user NAME\" and \"password SECRET\" nor \"token SECRET\""));
    access.user_password = absl::StrCat(secrets["user"], ":", secrets["password"]);
  }
  if (!options.ca_certificate_path.empty()) {
    ASSIGN_OR_RETURN(access.ca_pem, ReadFile(options.ca_certificate_path));
  }
  return access;
}

size_t TakeBody(char* bytes, size_t size, size_t count, void* body) {
  auto* const text = static_cast<std::string*>(body);
  if (text->size() + size * count > kBodyBytesMax) return 0;
  text->append(bytes, size * count);
  return size * count;
}

// Ranks shall not inherit it.
curl_socket_t OpenSocket(void* /*client*/, curlsocktype /*purpose*/, curl_sockaddr* address) {
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// Asks one resource, over one connection as long as that lasts. For one thread.
class RedfishClient {
 public:
  RedfishClient(const RedfishOptions& options, RedfishAccess access,
                std::function<int64_t()> now_ns)
      : url_(options.url), access_(std::move(access)), now_ns_(std::move(now_ns)) {
    easy_.reset(curl_easy_init());
    if (easy_ == nullptr) return;
    AddHeader("Accept: application/json");
    AddHeader("OData-Version: 4.0");
    if (!access_.token.empty()) AddHeader("X-Auth-Token: " + access_.token);
    Set(CURLOPT_URL, url_.c_str());
    Set(CURLOPT_HTTPHEADER, headers_.get());
    Set(CURLOPT_PROTOCOLS_STR,
        "https");  // and no redirections, which might take the password along
    Set(CURLOPT_NOPROXY, "*");
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_TIMEOUT_MS, static_cast<long>(options.timeout.count()));
    Set(CURLOPT_WRITEFUNCTION, TakeBody);
    Set(CURLOPT_WRITEDATA, &body_);
    Set(CURLOPT_OPENSOCKETFUNCTION, OpenSocket);
    Set(CURLOPT_ERRORBUFFER, error_);
    if (!access_.user_password.empty()) {
      Set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
      Set(CURLOPT_USERPWD, access_.user_password.c_str());
    }
    if (!access_.ca_pem.empty()) {
      curl_blob pem{access_.ca_pem.data(), access_.ca_pem.size(), CURL_BLOB_COPY};
      Set(CURLOPT_CAINFO_BLOB, &pem);
      Set(CURLOPT_CAPATH, nullptr);
    }
  }

  MeterAnswer Ask() {
    if (!is_ready_ || easy_ == nullptr)
      return {.state = MeterState::kUnreachable, .detail = "libcurl lacks what it takes"};
    if (refused_.has_value() && now_ns_() < ask_again_at_ns_) return *refused_;
    refused_.reset();
    body_.clear();
    error_[0] = '\0';
    const CURLcode code = curl_easy_perform(easy_.get());
    if (code != CURLE_OK) return Failed(code);
    long http = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &http);
    if (http == kHttpOk) return ReadRedfishAnswer(body_);
    const bool is_refused = http == kHttpUnauthorized || http == kHttpForbidden;
    MeterAnswer answer{.state = is_refused ? MeterState::kRefused : MeterState::kNoReading,
                       .detail = absl::StrCat("HTTP ", http, " from ", url_)};
    if (!is_refused) return answer;
    ask_again_at_ns_ = now_ns_() + kRefusedPauseNs;
    refused_ = answer;
    return answer;
  }

 private:
  template <class Value>
  void Set(CURLoption option, Value value) {
    is_ready_ = is_ready_ && curl_easy_setopt(easy_.get(), option, value) == CURLE_OK;
  }
  void AddHeader(const std::string& line) {
    if (curl_slist* const longer = curl_slist_append(headers_.get(), line.c_str())) {
      headers_.release();
      headers_.reset(longer);
    }
  }

  MeterAnswer Failed(CURLcode code) const {
    MeterState state = MeterState::kUnreachable;
    if (code == CURLE_OPERATION_TIMEDOUT) state = MeterState::kLate;
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
      state = MeterState::kUnverified;
    if (code == CURLE_WRITE_ERROR) state = MeterState::kNoReading;  // longer than any resource
    const char* const why = error_[0] != '\0' ? error_ : curl_easy_strerror(code);
    return {.state = state, .detail = absl::StrCat(url_, ": ", why)};
  }

  const std::string url_;
  RedfishAccess access_;
  const std::function<int64_t()> now_ns_;
  std::unique_ptr<curl_slist, ListFree> headers_;
  std::unique_ptr<CURL, EasyFree> easy_;
  bool is_ready_ = true;
  std::string body_;
  char error_[CURL_ERROR_SIZE] = {};
  std::optional<MeterAnswer> refused_;
  int64_t ask_again_at_ns_ = 0;
};

}  // namespace

std::unique_ptr<TelemetrySource> MakeRedfishSource(const SourceOptions& options) {
  if (!options.meters.redfish.has_value()) return std::make_unique<NoSource>();
  const RedfishOptions& redfish = *options.meters.redfish;
  curl_global_init(CURL_GLOBAL_DEFAULT);
  // Now, while this process may still read them.
  const absl::StatusOr<RedfishAccess> access = RedfishAccessOf(redfish);
  std::function<AskedMeter::Ask()> make;
  if (access.ok()) {
    make = [redfish, access = *access, now_ns = options.now_ns]() -> AskedMeter::Ask {
      auto client = std::make_shared<RedfishClient>(redfish, access, now_ns);
      return [client] { return client->Ask(); };
    };
  } else {
    make = [why = std::string(access.status().message())]() -> AskedMeter::Ask {
      return [why] { return MeterAnswer{.state = MeterState::kNoCredentials, .detail = why}; };
    };
  }
  return std::make_unique<AskedMeter>("node.redfish", make, redfish.timeout, options.now_ns);
}

}  // namespace assay::agent
