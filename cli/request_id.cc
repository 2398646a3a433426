#include "cli/request_id.h"

#include <sys/random.h>

#include <array>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "common/log.h"

namespace assay::cli {

std::string NewRequestId() {
  std::array<unsigned char, 16> bytes;
  const ssize_t filled = getrandom(bytes.data(), bytes.size(), 0);
  CHECK(filled == static_cast<ssize_t>(bytes.size())) << "getrandom=" << filled;
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0FU) | 0x40U);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3FU) | 0x80U);
  const std::string hex = absl::BytesToHexString(std::string(bytes.begin(), bytes.end()));
  return absl::StrCat(hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

}  // namespace assay::cli
