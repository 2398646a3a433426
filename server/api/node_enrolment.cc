#include "server/api/node_enrolment.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/log.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::api {
namespace {

// All nodes of the largest job may ask at one moment.
constexpr size_t kQueueLimit = 10'000;

bool SaysNothing(const std::string& address) {
  return address.empty() || address == "0.0.0.0" || absl::StartsWith(address, "127.");
}

// The credential was made on the node that it names, as far as can be told.
absl::Status CheckPlace(const NodeEnrolmentOptions& options, const std::string& address,
                        const std::string& node) {
  const std::vector<std::string> known = options.addresses_of(node);
  if (SaysNothing(address) || known.empty() ||
      std::all_of(known.begin(), known.end(), SaysNothing)) {
    LOG(INFO) << "place not checked node=" << node << " encoded_at=" << address
              << " known=" << absl::StrJoin(known, ",");
    return absl::OkStatus();
  }
  if (std::find(known.begin(), known.end(), address) != known.end()) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "the munge credential was made at ", address, ", and node ", node, " is at ",
      absl::StrJoin(known, ", "),
      " as the coordinator's host knows it: let munged of the node say that address (munged "
      "--origin), or correct the name's addresses on the coordinator's host"));
}

}  // namespace

std::vector<std::string> AddressesOf(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* it = found; it != nullptr; it = it->ai_next) {
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* const address = reinterpret_cast<const sockaddr_in*>(it->ai_addr);
    if (inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()) != nullptr)
      addresses.emplace_back(text.data());
  }
  return addresses;
}

absl::StatusOr<NodeClaim> CheckCredential(const NodeEnrolmentOptions& options,
                                          const std::string& credential,
                                          const std::string& csr_pem) {
  ASSIGN_OR_RETURN(const MungeCredential opened, options.open(credential));
  if (opened.uid != options.uid)
    return absl::PermissionDeniedError(
        absl::StrCat("the munge credential is of user ", opened.uid,
                     ", and the jobs of this coordinator run as ", options.uid,
                     ": its user has the same number on all hosts, and nobody else enrols"));
  ASSIGN_OR_RETURN(NodeClaim claim, ParseNodeClaim(opened.payload));
  if (claim.request_sha256 != Sha256Hex(csr_pem))
    return absl::PermissionDeniedError(
        "the munge credential was made for another certificate request");
  RETURN_IF_ERROR(CheckPlace(options, opened.address, claim.node));
  return claim;
}

NodeEnrolment::NodeEnrolment(NodeEnrolmentOptions options)
    : options_(std::move(options)), thread_("munge", kQueueLimit) {}

void NodeEnrolment::Check(const std::string& credential, const std::string& csr_pem,
                          OnClaim on_claim) {
  // Shared, because a task that is refused is dropped with what it holds.
  const auto shared = std::make_shared<OnClaim>(std::move(on_claim));
  const bool is_taken = thread_.Post([this, credential, csr_pem, shared] {
    (*shared)(CheckCredential(options_, credential, csr_pem));
  });
  if (!is_taken) (*shared)(absl::UnavailableError("too many nodes enrol at the moment: ask again"));
}

}  // namespace assay::api
