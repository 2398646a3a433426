// Addresses of the web.

#ifndef COMMON_URL_H_
#define COMMON_URL_H_

#include <string>

#include "absl/strings/string_view.h"

namespace assay {

// `name` or `value` of a query or of a path's segment: every byte but letters, digits and -._~ as
// %XX (RFC 3986). Pure.
std::string EncodeUrl(absl::string_view text);

}  // namespace assay

#endif  // COMMON_URL_H_
