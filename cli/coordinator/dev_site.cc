#include "cli/coordinator/dev_site.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/util/time_util.h"

#include "cli/command/share.h"
#include "common/file.h"
#include "common/pki.h"
#include "common/secret.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr absl::Duration kSiteStartTimeout = absl::Seconds(30);
constexpr absl::Duration kSiteGlance = absl::Milliseconds(50);

absl::Status WriteToken(const client::Client& client, const DevSiteOptions& options) {
  v1::CreateTokenRequest request;
  request.set_request_id(MakeUuid());
  request.mutable_token()->set_kind(v1::Token::ACCESS);
  request.mutable_token()->set_role("public");
  request.mutable_token()->set_principal("site");
  *request.mutable_lifetime() =
      google::protobuf::util::TimeUtil::SecondsToDuration(absl::ToInt64Seconds(options.lifetime));
  ASSIGN_OR_RETURN(const v1::CreateTokenResponse created, client.CallRetrying(request));
  return WriteFileAtomic(JoinPath(options.directory, "public.token"),
                         absl::StrCat(created.secret(), "\n"), kPrivateFile);
}

absl::Status WriteCertificate(absl::Time now, const DevSiteOptions& options) {
  const auto path = [&](absl::string_view name) { return JoinPath(options.directory, name); };
  CertificateAndKey ca;
  ASSIGN_OR_RETURN(ca.certificate_pem, ReadFile(path("ca.crt")));
  ASSIGN_OR_RETURN(ca.key_pem, ReadFile(path("ca.key")));
  ASSIGN_OR_RETURN(const KeyAndCsr made, MakeKeyAndCsr("localhost"));
  ASSIGN_OR_RETURN(const std::string certificate,
                   SignCsr(ca, made.csr_pem,
                           {.common_name = "localhost",
                            .subject_names = {"localhost", "127.0.0.1"},
                            .kind = CertificateKind::kServer,
                            .validity = {now, options.lifetime}}));
  RETURN_IF_ERROR(WriteFileAtomic(path("web.key"), made.key_pem, kPrivateFile));
  return WriteFileAtomic(path("web.crt"), certificate);
}

std::string SiteConfigText(const DevSiteOptions& options) {
  return absl::StrCat("# proto: assay.v1.WebConfig\n", "listen_address: \"", options.listen_address,
                      "\"\n", "url: \"https://", options.listen_address, "\"\n",
                      "server_address: \"", options.server_address, "\"\n",
                      "ca_certificate_path: \"ca.crt\"\n", "public_token_path: \"public.token\"\n",
                      "certificate_path: \"web.crt\"\n", "key_path: \"web.key\"\n");
}

bool Listens(const std::string& address) {
  sockaddr_in target = {};
  target.sin_family = AF_INET;
  target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int port = 0;
  if (!absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) return false;
  target.sin_port = htons(static_cast<uint16_t>(port));
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&target), sizeof(target)) == 0;
}

absl::Status AwaitSite(const ProcessId& process, const DevSiteOptions& options) {
  const absl::Time deadline = absl::Now() + kSiteStartTimeout;
  const std::string log = JoinPath(options.directory, "assay-web.log");
  while (!Listens(options.listen_address)) {
    ASSIGN_OR_RETURN(const std::optional<int> exit_code, PollExit(process));
    if (exit_code.has_value())
      return absl::InternalError(
          absl::StrCat("assay-web ended with exit code ", *exit_code, "; its log is ", log));
    if (absl::Now() >= deadline)
      return absl::DeadlineExceededError(
          absl::StrCat("assay-web does not listen; its log is ", log));
    absl::SleepFor(kSiteGlance);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ProcessId> StartDevSite(const Context& context, const client::Client& client,
                                       const DevSiteOptions& options) {
  ASSIGN_OR_RETURN(const std::string program, SiblingProgram(context.env(), "assay-web"));
  RETURN_IF_ERROR(WriteToken(client, options));
  RETURN_IF_ERROR(WriteCertificate(context.env().clock->Wall(), options));
  const std::string config = JoinPath(options.directory, "web.textproto");
  RETURN_IF_ERROR(WriteFileAtomic(config, SiteConfigText(options)));
  SpawnOptions spawn;
  spawn.argv = {program, "--config", config};
  if (options.ends_with_this) spawn.argv.push_back(absl::StrCat("--end_with=", getpid()));
  spawn.output_path = JoinPath(options.directory, "assay-web.log");
  spawn.new_session = true;
  ASSIGN_OR_RETURN(const ProcessId process, Spawn(spawn));
  const absl::Status status = AwaitSite(process, options);
  if (status.ok()) return process;
  SignalGroup(process, SIGKILL).IgnoreError();
  return status;
}

}  // namespace assay::cli
