// The site's own scripts, styles and images, which are part of the program: /static/app.css.

#ifndef SERVER_WEB_ASSETS_H_
#define SERVER_WEB_ASSETS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace assay::web {

struct Asset {
  std::string content;
  std::string gzip;  // the same, compressed; empty if that does not make it smaller
  std::string content_type;
  std::string digest;  // of the content, for the ETag and the link
};

// The asset of that name ("app.css"), which lives as long as the program; null if there is none.
// Thread-safe.
const Asset* FindAsset(absl::string_view name);

// The link to an asset: "/static/app.css?v=1f2e...", which changes with its content, so that
// browsers keep it for a year. CHECKs that it exists.
std::string AssetUrl(absl::string_view name);

}  // namespace assay::web

#endif  // SERVER_WEB_ASSETS_H_
