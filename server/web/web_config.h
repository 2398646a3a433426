// The configuration of assay-web: one text proto (WebConfig), read and validated whole.

#ifndef SERVER_WEB_WEB_CONFIG_H_
#define SERVER_WEB_WEB_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"

#include "assay/v1/config.pb.h"

#include "server/web/http_server.h"
#include "server/web/site.h"

namespace assay::web {

// Reads the file at `path`. Relative paths in it are relative to its folder. INVALID_ARGUMENT with
// all problems, a line each.
absl::StatusOr<v1::WebConfig> LoadWebConfig(const std::string& path);

// The same from text; `path` is for messages, and relative paths are relative to its folder.
absl::StatusOr<v1::WebConfig> ParseWebConfig(const std::string& text, const std::string& path);

// The site's certificate and its key, which belong together. Errors are of files that cannot be
// read or used.
absl::StatusOr<CertificateAndKey> CertificateOf(const v1::WebConfig& config);

// What a loaded configuration means. Errors are of files that cannot be read or used: all are read
// here.
absl::StatusOr<HttpServerOptions> HttpServerOptionsOf(const v1::WebConfig& config);
absl::StatusOr<SiteOptions> SiteOptionsOf(const v1::WebConfig& config);

}  // namespace assay::web

#endif  // SERVER_WEB_WEB_CONFIG_H_
