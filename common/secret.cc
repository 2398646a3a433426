#include "common/secret.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/log.h"
#include "common/sha256.h"

namespace assay {
namespace {

constexpr size_t kTokenBytes = 20;

// Base32 without padding; `bytes` has a multiple of five bytes.
std::string Base32(absl::string_view bytes) {
  static constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
  std::string text;
  uint32_t pending = 0;
  int bit_count = 0;
  for (const char c : bytes) {
    pending = (pending << 8) | static_cast<unsigned char>(c);
    bit_count += 8;
    while (bit_count >= 5) {
      bit_count -= 5;
      text += kAlphabet[(pending >> bit_count) & 31U];
    }
  }
  return text;
}

}  // namespace

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  size_t done = 0;
  while (done < count) {
    const ssize_t n = getrandom(bytes.data() + done, count - done, 0);
    CHECK(n >= 0 || errno == EINTR) << "getrandom errno=" << errno;
    if (n > 0) done += static_cast<size_t>(n);
  }
  return bytes;
}

std::string MakeToken() {
  return absl::StrCat("assay_", Base32(RandomBytes(kTokenBytes)));
}

std::string TokenHash(const std::string& token) {
  return Sha256Hex(token);
}

std::string MakeUuid() {
  std::string bytes = RandomBytes(16);
  bytes[6] = static_cast<char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<char>((bytes[8] & 0x3f) | 0x80);
  const std::string hex = absl::BytesToHexString(bytes);
  return absl::StrCat(hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

std::vector<int64_t> MakeSeeds(int count) {
  std::set<int64_t> seeds;
  while (seeds.size() < static_cast<size_t>(count)) {
    uint64_t bits = 0;
    std::memcpy(&bits, RandomBytes(sizeof(bits)).data(), sizeof(bits));
    const auto seed = static_cast<int64_t>(bits >> 33);
    if (seed > 0) seeds.insert(seed);
  }
  std::vector<int64_t> drawn(seeds.begin(), seeds.end());
  // A set is sorted; what was drawn must not look ordered.
  std::rotate(drawn.begin(), drawn.begin() + count / 2, drawn.end());
  return drawn;
}

}  // namespace assay
