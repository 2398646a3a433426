// The event log as a chain of hashes, so that an edited, removed, inserted or moved event shows.
//
//   leaf(n)  = SHA-256(0x00 | event n)                   as the leaves of RFC 9162, section 2.1.1
//   chain(n) = SHA-256(0x02 | chain(n - 1) | leaf(n))    chain(0) is 32 zero bytes
//
// Each row of `events` carries its chain(n). Lines of runs are too many for a hash each: the event
// that says they are durable carries a digest over all of them. The leaves are ready for a Merkle
// tree, whose inner nodes begin with 0x01: then single events can be proven to others.

#ifndef SERVER_STORE_CHAIN_H_
#define SERVER_STORE_CHAIN_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#include "common/sha256.h"

namespace assay::store {

inline constexpr size_t kHashBytes = 32;

// chain(0).
std::string ChainStart();

// A row of `events`; numbers of submission and run are 0 for none.
struct ChainedEvent {
  int64_t seq = 0;
  int64_t at_us = 0;
  absl::string_view type;
  int64_t version = 0;
  absl::string_view principal;
  int64_t submission = 0;
  int64_t run = 0;
  bool is_change = false;
  absl::string_view body;
  absl::string_view lines;  // see LinesSeal; empty for an event without lines
};

// chain(n) for the event that follows `previous`.
std::string ChainHash(absl::string_view previous, const ChainedEvent& event);

// A row of `run_events`.
struct ChainedLine {
  int64_t ordinal = 0;
  int64_t node_rank = 0;
  int64_t seq = 0;
  int64_t kind = 0;
  int64_t line = 0;
  absl::string_view text;
  int64_t wall_us = 0;
  int64_t mono_ns = 0;
  int64_t receive_us = 0;
  absl::string_view finding;
  bool is_late = false;
  bool is_attributed = false;
};

// Which lines an event is about, ordinals first_ordinal to first_ordinal + count - 1 of its run,
// and what they say: the column `lines` of `events`.
struct LinesSeal {
  int64_t first_ordinal = 0;
  int64_t count = 0;
  std::string digest;
  bool operator==(const LinesSeal&) const = default;
};
std::string Encode(const LinesSeal& seal);
// A count of -1 if `bytes` is none.
LinesSeal DecodeLinesSeal(absl::string_view bytes);

// Makes a seal of lines in order of their ordinals. Not thread-safe.
class LinesSealer {
 public:
  void Add(const ChainedLine& line);
  // Call once.
  LinesSeal Finish();

 private:
  LinesSeal seal_;
  Sha256 digest_;
  std::string buffer_;
};

}  // namespace assay::store

#endif  // SERVER_STORE_CHAIN_H_
