// Outlets of power distribution units that feed the node, by SNMP over UDP: version 3 with a user,
// or 2c with a community, which anybody on the network can read.

// clang-format off: net-snmp's headers need the first of them first.
#include <net-snmp/net-snmp-config.h>
#include <net-snmp/net-snmp-includes.h>
// clang-format on

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/status.h"
#include "worker/agent/telemetry/asked_meter.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

using telemetry::MeterState;

constexpr double kOutletsWattsMax = 1e6;
constexpr size_t kSecretBytesMin = 8;  // RFC 3414

struct SessionClose {
  void operator()(void* session) const { snmp_sess_close(session); }
};
struct PduFree {
  void operator()(netsnmp_pdu* pdu) const { snmp_free_pdu(pdu); }
};

// "1.3.6.1", with or without a dot in front.
std::vector<oid> ObjectId(absl::string_view text) {
  absl::ConsumePrefix(&text, ".");
  std::vector<oid> id;
  for (const absl::string_view part : absl::StrSplit(text, '.')) {
    uint32_t number = 0;
    if (!absl::SimpleAtoi(part, &number)) return {};
    id.push_back(number);
  }
  return id;
}

// As "auth" and "priv" of a file of secrets name them.
struct Algorithm {
  absl::string_view name;
  oid* id;
  size_t size;
};
const std::vector<Algorithm>& AuthAlgorithms() {
  static const std::vector<Algorithm> all = {
      {"SHA", usmHMACSHA1AuthProtocol, OID_LENGTH(usmHMACSHA1AuthProtocol)},
      {"SHA-256", usmHMAC192SHA256AuthProtocol, OID_LENGTH(usmHMAC192SHA256AuthProtocol)},
      {"SHA-512", usmHMAC384SHA512AuthProtocol, OID_LENGTH(usmHMAC384SHA512AuthProtocol)}};
  return all;
}
const std::vector<Algorithm>& PrivAlgorithms() {
  static const std::vector<Algorithm> all = {
      {"AES", usmAESPrivProtocol, OID_LENGTH(usmAESPrivProtocol)}};
  return all;
}

// The line "ALGORITHM SECRET".
struct Keyed {
  Algorithm algorithm{};
  std::string secret;
};

absl::StatusOr<Keyed> KeyedOf(const std::string& line, const std::vector<Algorithm>& algorithms) {
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(line, absl::MaxSplits(' ', 1));
  for (const Algorithm& one : algorithms)
    if (one.name == halves.first && halves.second.size() >= kSecretBytesMin)
      return Keyed{one, std::string(halves.second)};
  return absl::InvalidArgumentError(
      "write \"auth SHA-256 SECRET\" (or SHA, SHA-512) and \"priv AES SECRET\", with secrets of "
      "8 characters or more");
}

// By what a unit lets this node read.
struct SnmpAccess {
  std::string community;  // not empty: version 2c
  std::string user;
  Keyed auth;
  Keyed priv;
};

absl::StatusOr<SnmpAccess> SnmpAccessOf(const std::string& path) {
  ASSIGN_OR_RETURN(auto secrets, ReadMeterSecrets(path));
  SnmpAccess access{
      .community = secrets["community"], .user = secrets["user"], .auth = {}, .priv = {}};
  if (!access.community.empty()) return access;
  if (access.user.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has neither \"user NAME\" nor \"community SECRET\""));
  ASSIGN_OR_RETURN(access.auth, KeyedOf(secrets["auth"], AuthAlgorithms()));
  ASSIGN_OR_RETURN(access.priv, KeyedOf(secrets["priv"], PrivAlgorithms()));
  return access;
}

bool SetKey(const Keyed& keyed, const Algorithm& hash, oid** protocol, size_t* protocol_size,
            u_char* key, size_t* key_size) {
  *protocol = snmp_duplicate_objid(keyed.algorithm.id, keyed.algorithm.size);
  *protocol_size = keyed.algorithm.size;
  *key_size = USM_AUTH_KU_LEN;
  return generate_Ku(hash.id, static_cast<u_int>(hash.size),
                     reinterpret_cast<const u_char*>(keyed.secret.data()), keyed.secret.size(), key,
                     key_size) == SNMPERR_SUCCESS;
}

MeterState StateOf(int snmp_error) {
  switch (snmp_error) {
    case SNMPERR_TIMEOUT:
      return MeterState::kLate;
    case SNMPERR_AUTHENTICATION_FAILURE:
    case SNMPERR_UNKNOWN_USER_NAME:
    case SNMPERR_UNSUPPORTED_SEC_LEVEL:
    case SNMPERR_USM_UNKNOWNSECURITYNAME:
    case SNMPERR_USM_UNSUPPORTEDSECURITYLEVEL:
    case SNMPERR_USM_AUTHENTICATIONFAILURE:
    case SNMPERR_USM_DECRYPTIONERROR:
      return MeterState::kRefused;
    default:
      return MeterState::kUnreachable;
  }
}

// One unit. For one thread.
class SnmpUnit {
 public:
  SnmpUnit(SnmpOptions options, absl::StatusOr<SnmpAccess> access)
      : options_(std::move(options)), access_(std::move(access)) {}

  // The power of its outlets together.
  MeterAnswer Ask() {
    if (!access_.ok())
      return {.state = MeterState::kNoCredentials,
              .detail = std::string(access_.status().message())};
    if (session_ == nullptr) {
      const int error = Open();
      if (error != SNMPERR_SUCCESS) return Failed(error);
    }
    netsnmp_pdu* const request = snmp_pdu_create(SNMP_MSG_GET);
    for (const std::string& text : options_.power_oids) {
      const std::vector<oid> id = ObjectId(text);
      snmp_add_null_var(request, id.data(), id.size());
    }
    netsnmp_pdu* raw = nullptr;
    const int status = snmp_sess_synch_response(session_.get(), request, &raw);
    const std::unique_ptr<netsnmp_pdu, PduFree> response(raw);
    if (status != STAT_SUCCESS || response == nullptr) {
      const int error = status == STAT_TIMEOUT ? SNMPERR_TIMEOUT
                                               : snmp_sess_session(session_.get())->s_snmp_errno;
      session_.reset();  // the unit may have been started anew, with other keys and times
      return Failed(error);
    }
    return Sum(*response);
  }

 private:
  int Open() {
    netsnmp_session wanted;
    snmp_sess_init(&wanted);
    std::string peer = "udp:" + options_.address;
    wanted.peername = peer.data();
    // One that was started anew asks for the same again, by its new clock.
    wanted.retries = 1;
    wanted.timeout = std::chrono::microseconds(options_.timeout).count() / 2;
    std::string community = access_->community;
    std::string user = access_->user;
    if (!community.empty()) {
      wanted.version = SNMP_VERSION_2c;
      wanted.community = reinterpret_cast<u_char*>(community.data());
      wanted.community_len = community.size();
    } else {
      wanted.version = SNMP_VERSION_3;
      wanted.securityName = user.data();
      wanted.securityNameLen = user.size();
      wanted.securityLevel = SNMP_SEC_LEVEL_AUTHPRIV;
      // The key of encryption is made by the hash of authentication (RFC 3826).
      const Algorithm& hash = access_->auth.algorithm;
      if (!SetKey(access_->auth, hash, &wanted.securityAuthProto, &wanted.securityAuthProtoLen,
                  wanted.securityAuthKey, &wanted.securityAuthKeyLen) ||
          !SetKey(access_->priv, hash, &wanted.securityPrivProto, &wanted.securityPrivProtoLen,
                  wanted.securityPrivKey, &wanted.securityPrivKeyLen))
        return SNMPERR_GENERR;
    }
    session_.reset(snmp_sess_open(&wanted));  // copies what it needs
    free(wanted.securityAuthProto);
    free(wanted.securityPrivProto);
    if (session_ == nullptr) {
      int error = 0;
      snmp_error(&wanted, nullptr, &error, nullptr);
      return error == SNMPERR_SUCCESS ? SNMPERR_GENERR : error;
    }
    // Ranks shall not inherit it.
    fcntl(snmp_sess_transport(session_.get())->sock, F_SETFD, FD_CLOEXEC);
    return SNMPERR_SUCCESS;
  }

  MeterAnswer Failed(int error) const {
    return {.state = StateOf(error),
            .detail = absl::StrCat(options_.address, ": ", snmp_api_errstring(error))};
  }

  MeterAnswer Sum(const netsnmp_pdu& response) const {
    double watts = 0;
    size_t count = 0;
    for (const netsnmp_variable_list* variable = response.variables; variable != nullptr;
         variable = variable->next_variable) {
      const bool is_number = variable->type == ASN_INTEGER || variable->type == ASN_GAUGE ||
                             variable->type == ASN_COUNTER || variable->type == ASN_UINTEGER;
      if (response.errstat != SNMP_ERR_NOERROR || !is_number || variable->val.integer == nullptr)
        return {.state = MeterState::kNoReading,
                .detail = absl::StrCat(options_.address, ": no number at ",
                                       count < options_.power_oids.size()
                                           ? options_.power_oids[count]
                                           : "an object that was not asked for")};
      watts += static_cast<double>(*variable->val.integer) * options_.watts_per_unit;
      ++count;
    }
    if (count != options_.power_oids.size() || !(watts >= 0 && watts <= kOutletsWattsMax))
      return {
          .state = MeterState::kNoReading,
          .detail = absl::StrCat(options_.address, " says ", watts, " W of ", count, " outlets")};
    return {.power_mw = std::llround(watts * 1000)};
  }

  const SnmpOptions options_;
  const absl::StatusOr<SnmpAccess> access_;
  std::unique_ptr<void, SessionClose> session_;
};

// The library shall read no file of the site's, write none, and print nothing.
void StartLibrary() {
  netsnmp_register_loghandler(NETSNMP_LOGHANDLER_NONE, LOG_DEBUG);
  for (const int what :
       {NETSNMP_DS_LIB_DONT_READ_CONFIGS, NETSNMP_DS_LIB_DONT_PERSIST_STATE,
        NETSNMP_DS_LIB_DISABLE_PERSISTENT_LOAD, NETSNMP_DS_LIB_DISABLE_PERSISTENT_SAVE})
    netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, what, 1);
  netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_MIB_ERRORS, 0);
  netsnmp_set_mib_directory("");
  init_snmp("assay");
}

}  // namespace

std::unique_ptr<TelemetrySource> MakeSnmpSource(const SourceOptions& options) {
  if (options.meters.snmp.empty()) return std::make_unique<NoSource>();
  std::vector<std::shared_ptr<SnmpUnit>> units;
  std::chrono::milliseconds timeout(0);
  for (const SnmpOptions& one : options.meters.snmp) {
    // Secrets now, while this process may still read them.
    units.push_back(std::make_shared<SnmpUnit>(one, SnmpAccessOf(one.credentials_path)));
    timeout += one.timeout;
  }
  const auto make = [units]() -> AskedMeter::Ask {
    StartLibrary();
    return [units] {
      MeterAnswer sum{.power_mw = 0};
      for (const std::shared_ptr<SnmpUnit>& unit : units) {
        MeterAnswer one = unit->Ask();
        if (one.state != MeterState::kReads) return one;
        *sum.power_mw += one.power_mw.value_or(0);
      }
      return sum;
    };
  };
  return std::make_unique<AskedMeter>("node.pdu", make, timeout, options.now_ns);
}

}  // namespace assay::agent
