#include "server/web/compression.h"

#include <zlib.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include "common/log.h"

namespace assay::web {
namespace {

constexpr int kLevel = 5;            // a third of the time of level 9 for HTML, 2 % larger
constexpr int kGzipWindowBits = 31;  // 15, and 16 for the format of gzip (zlib.h)
constexpr int kMemoryLevel = 8;

// Whether a parameter "q=0.000" of a header's element says "not at all".
bool IsRefused(const std::vector<std::string>& parameters) {
  for (const std::string& parameter : parameters) {
    const std::vector<std::string> pair = absl::StrSplit(parameter, absl::MaxSplits('=', 1));
    double weight = 1;
    if (pair.size() == 2 && absl::StripAsciiWhitespace(pair[0]) == "q" &&
        absl::SimpleAtod(pair[1], &weight) && weight <= 0)
      return true;
  }
  return false;
}

}  // namespace

std::string Gzip(absl::string_view text) {
  z_stream stream = {};
  CHECK(deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindowBits, kMemoryLevel,
                     Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

bool AcceptsGzip(absl::string_view accept_encoding) {
  for (const absl::string_view element : absl::StrSplit(accept_encoding, ',')) {
    std::vector<std::string> parts = absl::StrSplit(element, ';');
    const std::string coding = absl::AsciiStrToLower(absl::StripAsciiWhitespace(parts[0]));
    parts.erase(parts.begin());
    if (coding == "gzip" || coding == "*") return !IsRefused(parts);
  }
  return false;
}

}  // namespace assay::web
