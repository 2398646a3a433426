// How a rank and the rendezvous of rank 0 convince each other that both know the run's token,
// without ever sending it.
//
//   rank   -> server   hello       world size, rank, a random number
//   server -> rank     challenge   another random number, and the server's proof
//   rank   -> server   answer      the rank's proof
//
// A proof is an HMAC with the token as key over everything that both must mean alike: protocol,
// run, world size, rank, both numbers, and who speaks. So a proof serves for one connection and one
// direction only, and a false server learns nothing that it could use. From the same comes a key
// for each direction, with which every later frame is marked (rendezvous_frame.h): passing the
// frames of a true pair on gives no power over them.

#ifndef WORKER_COMM_HANDSHAKE_H_
#define WORKER_COMM_HANDSHAKE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace assay::comm {

inline constexpr absl::string_view kRendezvousProtocol = "assay-rendezvous 2";

// What one side believes of a connection. Pure; both sides with the same values get the same bytes.
struct Handshake {
  std::string token;
  std::string run;  // its name
  uint32_t world_size = 0;
  uint32_t rank = 0;         // of the one that joins
  std::string rank_nonce;    // kNonceBytes
  std::string server_nonce;  // kNonceBytes

  std::string ServerProof() const;
  std::string RankProof() const;
  // Of the frames that the rank sends, and of those that it gets.
  std::string KeyOfRank() const;
  std::string KeyOfServer() const;
};

}  // namespace assay::comm

#endif  // WORKER_COMM_HANDSHAKE_H_
