#include "worker/comm/handshake.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "worker/comm/keys.h"

namespace assay::comm {
namespace {

// No two handshakes have the same text: all parts but the last two are bounded by their length or a
// line's end, and those are of fixed length.
std::string Text(const Handshake& handshake, absl::string_view purpose) {
  return absl::StrCat(kRendezvousProtocol, " ", purpose, "\n", handshake.run.size(), " ",
                      handshake.run, "\n", handshake.world_size, " ", handshake.rank, "\n",
                      handshake.rank_nonce, handshake.server_nonce);
}

std::string KeyFor(const Handshake& handshake, absl::string_view purpose) {
  return DeriveKey(handshake.token, absl::StrCat(handshake.rank_nonce, handshake.server_nonce),
                   Text(handshake, purpose));
}

}  // namespace

std::string Handshake::ServerProof() const {
  return Proof(token, Text(*this, "server knows"));
}

std::string Handshake::RankProof() const {
  return Proof(token, Text(*this, "rank knows"));
}

std::string Handshake::KeyOfRank() const {
  return KeyFor(*this, "frames of rank");
}

std::string Handshake::KeyOfServer() const {
  return KeyFor(*this, "frames of server");
}

}  // namespace assay::comm
