#include "server/store/chain.h"

#include <utility>

namespace assay::store {
namespace {

constexpr char kLeaf = 0;
constexpr char kChain = 2;
// Pieces in which lines are hashed: a call for each would cost as much as the hashing.
constexpr size_t kPieceBytes = 64 << 10;

void PutInt(int64_t value, std::string* bytes) {
  for (int shift = 56; shift >= 0; shift -= 8)
    bytes->push_back(static_cast<char>(static_cast<uint64_t>(value) >> shift));
}

void PutText(absl::string_view text, std::string* bytes) {
  PutInt(static_cast<int64_t>(text.size()), bytes);
  bytes->append(text.data(), text.size());
}

int64_t GetInt(absl::string_view bytes) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[static_cast<size_t>(i)]);
  return static_cast<int64_t>(value);
}

std::string HashOf(absl::string_view bytes) {
  Sha256 hash;
  hash.Add(bytes);
  return hash.Digest();
}

}  // namespace

std::string ChainStart() {
  return std::string(kHashBytes, '\0');
}

std::string ChainHash(absl::string_view previous, const ChainedEvent& event) {
  std::string leaf(1, kLeaf);
  for (const int64_t number : {event.seq, event.at_us, event.version, event.submission, event.run,
                               int64_t{event.is_change}})
    PutInt(number, &leaf);
  for (const absl::string_view text : {event.type, event.principal, event.body, event.lines})
    PutText(text, &leaf);
  std::string link(1, kChain);
  link.append(previous.data(), previous.size());
  link += HashOf(leaf);
  return HashOf(link);
}

std::string Encode(const LinesSeal& seal) {
  std::string bytes;
  PutInt(seal.first_ordinal, &bytes);
  PutInt(seal.count, &bytes);
  return bytes + seal.digest;
}

LinesSeal DecodeLinesSeal(absl::string_view bytes) {
  if (bytes.size() != 16 + kHashBytes) return {.count = -1};
  return {GetInt(bytes), GetInt(bytes.substr(8)), std::string(bytes.substr(16))};
}

void LinesSealer::Add(const ChainedLine& line) {
  if (seal_.count++ == 0) seal_.first_ordinal = line.ordinal;
  for (const int64_t number :
       {line.ordinal, line.node_rank, line.seq, line.kind, line.line, line.wall_us, line.mono_ns,
        line.receive_us, int64_t{line.is_late}, int64_t{line.is_attributed}})
    PutInt(number, &buffer_);
  PutText(line.text, &buffer_);
  PutText(line.finding, &buffer_);
  if (buffer_.size() < kPieceBytes) return;
  digest_.Add(buffer_);
  buffer_.clear();
}

LinesSeal LinesSealer::Finish() {
  digest_.Add(buffer_);
  seal_.digest = digest_.Digest();
  return std::move(seal_);
}

}  // namespace assay::store
