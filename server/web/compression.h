// gzip (RFC 1952), for text on its way to a browser.

#ifndef SERVER_WEB_COMPRESSION_H_
#define SERVER_WEB_COMPRESSION_H_

#include <string>

#include "absl/strings/string_view.h"

namespace assay::web {

// `text`, compressed. Thread-safe; about 100 MB/s.
std::string Gzip(absl::string_view text);

// True if a client with this Accept-Encoding header takes gzip (RFC 9110, section 12.5.3).
bool AcceptsGzip(absl::string_view accept_encoding);

}  // namespace assay::web

#endif  // SERVER_WEB_COMPRESSION_H_
