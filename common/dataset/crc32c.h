// CRC-32C (Castagnoli), and TensorFlow's masked form of it.
//
// Debian 12 has no C or C++ library for it; zlib and libdeflate offer only the other polynomial.
// Uses the processor's instruction (SSE 4.2) where there is one, else a table; both give the same
// result.

#ifndef COMMON_DATASET_CRC32C_H_
#define COMMON_DATASET_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace assay::dataset {

// CRC of `bytes` (reflected polynomial 0x82F63B78, initial value and final xor all ones: RFC 3720,
// appendix B.4). Thread-safe.
uint32_t Crc32c(absl::string_view bytes);

// The same by table alone, for processors without the instruction. Thread-safe.
uint32_t Crc32cByTable(absl::string_view bytes);

// How TFRecord files store a CRC, so that a CRC over data that holds CRCs stays a good checksum:
// rotated right by 15 bits, plus 0xA282EAD8.
constexpr uint32_t MaskCrc(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

}  // namespace assay::dataset

#endif  // COMMON_DATASET_CRC32C_H_
