#include "server/web/web_config.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

#include "common/file.h"
#include "common/pki.h"
#include "common/status.h"

namespace assay::web {
namespace {

using WebProblems = std::vector<std::string>;

// Collects what does not parse.
class WebSyntax final : public google::protobuf::io::ErrorCollector {
 public:
  WebSyntax(std::string path, WebProblems* problems)
      : path_(std::move(path)), problems_(problems) {}
  void AddError(int line, int column, const std::string& message) override {
    problems_->push_back(absl::StrCat(path_, ":", line + 1, ":", column + 1, ": ", message));
  }

 private:
  const std::string path_;
  WebProblems* const problems_;
};

void Absolute(const std::string& folder, std::string* path) {
  if (!path->empty() && (*path)[0] != '/') *path = JoinPath(folder, *path);
}

void Require(const std::string& value, absl::string_view field, absl::string_view remedy,
             WebProblems* problems) {
  if (value.empty()) problems->push_back(absl::StrCat(field, ": is empty: ", remedy));
}

void CheckOrigin(absl::string_view url, WebProblems* problems) {
  absl::string_view host = url;
  if (absl::ConsumePrefix(&host, "https://") && !host.empty() &&
      !absl::StrContains(host, absl::string_view("/")) && host == absl::AsciiStrToLower(host))
    return;
  problems->push_back(absl::StrCat("url: \"", url,
                                   "\" is not https://HOST or https://HOST:PORT, in lower case and "
                                   "without a path: what people type to come here"));
}

void CheckCount(int64_t value, absl::string_view field, WebProblems* problems) {
  constexpr int kCountMax = 100'000;
  if (value < 0 || value > kCountMax)
    problems->push_back(absl::StrCat(field, ": is ", value, ": give 0 to ", kCountMax));
}

absl::Status Validate(const v1::WebConfig& config, const std::string& path) {
  WebProblems problems;
  Require(config.listen_address(), "listen_address", "say host:port, like 127.0.0.1:8443",
          &problems);
  CheckOrigin(config.url(), &problems);
  Require(config.server_address(), "server_address", "say host:port of the coordinator", &problems);
  Require(config.ca_certificate_path(), "ca_certificate_path", "name the coordinator's ca.crt",
          &problems);
  Require(config.public_token_path(), "public_token_path",
          "name a file with a token of role public, which 'assay admin token create --role public' "
          "makes",
          &problems);
  Require(config.certificate_path(), "certificate_path", "name the site's certificate", &problems);
  Require(config.key_path(), "key_path", "name the key of the site's certificate", &problems);
  CheckCount(config.connections_max(), "connections_max", &problems);
  CheckCount(config.connections_per_address_max(), "connections_per_address_max", &problems);
  if (problems.empty()) {
    for (const absl::Status& status :
         {HttpServerOptionsOf(config).status(), SiteOptionsOf(config).status()})
      if (!status.ok()) problems.emplace_back(status.message());
  }
  if (problems.empty()) return absl::OkStatus();
  for (std::string& problem : problems)
    problem = absl::StrCat(path, ": ", problem);
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

}  // namespace

absl::StatusOr<v1::WebConfig> LoadWebConfig(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseWebConfig(text, path);
}

absl::StatusOr<v1::WebConfig> ParseWebConfig(const std::string& text, const std::string& path) {
  WebProblems problems;
  WebSyntax collector(path, &problems);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  v1::WebConfig config;
  if (!parser.ParseFromString(text, &config))
    return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  Absolute(folder, config.mutable_ca_certificate_path());
  Absolute(folder, config.mutable_public_token_path());
  Absolute(folder, config.mutable_certificate_path());
  Absolute(folder, config.mutable_key_path());
  RETURN_IF_ERROR(Validate(config, path));
  return config;
}

absl::StatusOr<CertificateAndKey> CertificateOf(const v1::WebConfig& config) {
  CertificateAndKey pair;
  ASSIGN_OR_RETURN(pair.certificate_pem, ReadFile(config.certificate_path()));
  ASSIGN_OR_RETURN(pair.key_pem, ReadFile(config.key_path()));
  RETURN_IF_ERROR(Annotate(CheckPair(pair), "key_path"));
  return pair;
}

absl::StatusOr<HttpServerOptions> HttpServerOptionsOf(const v1::WebConfig& config) {
  HttpServerOptions options{.listen_address = config.listen_address()};
  ASSIGN_OR_RETURN(options.certificate, CertificateOf(config));
  if (config.connections_max() > 0) options.limits.connections_max = config.connections_max();
  if (config.connections_per_address_max() > 0)
    options.limits.connections_per_address_max = config.connections_per_address_max();
  return options;
}

absl::StatusOr<SiteOptions> SiteOptionsOf(const v1::WebConfig& config) {
  SiteOptions options{.origin = config.url(), .routes = Routes()};
  options.coordinator.target = config.server_address();
  ASSIGN_OR_RETURN(options.coordinator.ca_pem, ReadFile(config.ca_certificate_path()));
  ASSIGN_OR_RETURN(const std::string token, ReadFile(config.public_token_path()));
  options.public_token = std::string(absl::StripAsciiWhitespace(token));
  if (options.public_token.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("public_token_path: ", config.public_token_path(), " is empty"));
  return options;
}

}  // namespace assay::web
