// Reads bytes of a fuzzer as choices: small numbers, extreme numbers, texts that break parsers.

#ifndef TESTS_FUZZ_BYTE_SOURCE_H_
#define TESTS_FUZZ_BYTE_SOURCE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/string_view.h"

namespace assay::testing {

// Bytes that ran out read as zero, so every input means something. `bytes` must outlive it.
class ByteSource {
 public:
  explicit ByteSource(absl::string_view bytes) : bytes_(bytes) {}

  bool is_empty() const { return bytes_.empty(); }

  uint8_t Byte() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }
  // A number below `bound`, which is at most 256.
  uint32_t Below(uint32_t bound) { return Byte() % bound; }
  // True for one byte value of `count`, and not for zero.
  bool Rarely(uint32_t count) { return Below(count) == count - 1; }

  template <typename T, size_t kCount>
  const T& Pick(const T (&values)[kCount]) {
    static_assert(kCount <= 256);
    return values[Below(kCount)];
  }

  // Mostly `usual`; else what is next to it, 0 or -1, or an end of `min` to `max`.
  template <typename Int>
  Int Near(Int usual, Int min = std::numeric_limits<Int>::min(),
           Int max = std::numeric_limits<Int>::max()) {
    return std::clamp(Choose(usual, min, max), min, max);
  }

  // Mostly `usual`; else empty, long, or with bytes that mean something elsewhere.
  std::string TextLike(absl::string_view usual) {
    constexpr absl::string_view kOdd[] = {
        "",  "..", "a/b",       "/", "\xff\xfe",        "\x1b[31m",      "two\nlines",
        "'", "\"", "%s%n{0}$(", "-", "e-9999999999999", "\xe2\x80\xaex", "null"};
    constexpr size_t kLongBytes = 5000;
    switch (Below(64)) {
      case 63:
        return std::string(kLongBytes, 'x');
      case 62:
        return std::string(1, '\0');
      case 61:
        return std::string(Pick(kOdd));
      default:
        return std::string(usual);
    }
  }

 private:
  template <typename Int>
  Int Choose(Int usual, Int min, Int max) {
    switch (Below(96)) {
      case 95:
        return max;
      case 94:
        return min;
      case 93:
        return 0;
      case 92:
        return -1;
      case 91:
        return usual == max ? usual : static_cast<Int>(usual + 1);
      case 90:
        return usual == min ? usual : static_cast<Int>(usual - 1);
      default:
        return usual;
    }
  }

  absl::string_view bytes_;
};

}  // namespace assay::testing

#endif  // TESTS_FUZZ_BYTE_SOURCE_H_
