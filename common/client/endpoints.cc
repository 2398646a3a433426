#include "common/client/endpoints.h"

#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/status.h"

namespace assay::client {
namespace {

constexpr int64_t kTokenBytesMax = 4096;  // ours have 38
constexpr char kStandardInput[] = "-";

absl::StatusOr<std::string> ReadToken(std::istream* standard_input, const std::string& path) {
  if (path != kStandardInput || standard_input == nullptr) return ReadFile(path, kTokenBytesMax);
  std::string token(kTokenBytesMax, '\0');
  standard_input->getline(token.data(), kTokenBytesMax);
  token.resize(std::strlen(token.c_str()));
  return token;
}

absl::Status AddCredentials(const EndpointSettings& settings, Endpoint* endpoint) {
  if (const auto& ca = settings.ca; ca.has_value()) {
    absl::StatusOr<std::string> pem = ReadFile(ca->value);
    if (!pem.ok())
      return absl::InvalidArgumentError(absl::StrCat("cannot read the CA certificate named by ",
                                                     ca->origin, ": ",
                                                     std::string(pem.status().message())));
    endpoint->ca_pem = *std::move(pem);
  }
  const std::optional<EndpointSetting>& token = settings.token;
  const std::optional<EndpointSetting>& file = settings.token_file;
  if (token.has_value() && (!file.has_value() || token->level <= file->level)) {
    endpoint->token = token->value;
  } else if (file.has_value()) {
    absl::StatusOr<std::string> text = ReadToken(settings.standard_input, file->value);
    if (!text.ok())
      return absl::InvalidArgumentError(absl::StrCat("cannot read the token file named by ",
                                                     file->origin, ": ",
                                                     std::string(text.status().message())));
    endpoint->token = std::string(absl::StripAsciiWhitespace(*text));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Endpoint> ResolveEndpoint(const EndpointSettings& settings) {
  Endpoint endpoint;
  const std::optional<EndpointSetting>& server = settings.server;
  const std::optional<EndpointSetting>& socket = settings.socket;
  if (server.has_value() && socket.has_value() && server->level == socket->level)
    return absl::InvalidArgumentError(absl::StrCat(server->origin, " and ", socket->origin,
                                                   " both say where the coordinator is: give one"));
  if (server.has_value() && (!socket.has_value() || server->level < socket->level)) {
    endpoint.target = server->value;
    RETURN_IF_ERROR(AddCredentials(settings, &endpoint));
    return endpoint;
  }
  if (socket.has_value()) {
    endpoint.target = absl::StrCat("unix:", socket->value);
    RETURN_IF_ERROR(AddCredentials(settings, &endpoint));
    return endpoint;
  }
  for (const std::string& path : settings.default_sockets) {
    if (!FileExists(path)) continue;
    endpoint.target = absl::StrCat("unix:", path);
    return endpoint;
  }
  return absl::UnavailableError(
      "no coordinator is known and none runs on this host; start a private one with 'assay dev', "
      "or name one with --server HOST:PORT --ca FILE (see 'assay help environment')");
}

}  // namespace assay::client
