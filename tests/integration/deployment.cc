#include "tests/integration/deployment.h"

#include <csignal>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "common/file.h"
#include "common/log.h"
#include "common/rpc/certificate_exchange.h"
#include "common/status.h"
#include "tests/rules/sample_log.h"

namespace assay::testing {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(2);

// As few runs as have a score.
constexpr char kTinyRound[] = R"(
[round]
name = "tiny"
base = "hpc-3.0.0"
label = "a round of the integration tests"

[benchmark]
name = "cosmoflow"
runs = 3
target = 0.40
)";

std::string Program() {
  const char* const folder = std::getenv("ASSAY_BIN_DIR");
  return JoinPath(folder == nullptr ? "build/dev/bin" : folder, "assayd");
}

absl::Time Now() {
  return absl::Now();
}

}  // namespace

Client::Client(Endpoint endpoint)
    : endpoint_(std::move(endpoint)),
      channel_(*MakeChannel(endpoint_)),
      submission_(v1::SubmissionService::NewStub(channel_)),
      worker_(v1::WorkerService::NewStub(channel_)),
      enrolment_(v1::EnrolmentService::NewStub(channel_)),
      admin_(v1::AdminService::NewStub(channel_)) {}

CertificateAndKey IssueCertificate(const CertificateAndKey& ca, const std::string& name,
                                   CertificateKind kind) {
  const absl::StatusOr<KeyAndCsr> request = MakeKeyAndCsr(name);
  CHECK_OK(request.status());
  const absl::StatusOr<std::string> certificate =
      SignCsr(ca, request->csr_pem,
              {.common_name = name,
               .subject_names = {"127.0.0.1", "localhost"},
               .kind = kind,
               .validity = {Now(), absl::Hours(1)}});
  CHECK_OK(certificate.status());
  return {*certificate, request->key_pem};
}

Deployment::Deployment()
    : ca_(*MakeCa("test CA", {Now(), absl::Hours(1)})), log_(dir_.Path("log.fifo")) {
  const CertificateAndKey server = IssueCertificate(ca_, "assayd", CertificateKind::kServer);
  CHECK_OK(WriteFileAtomic(dir_.Path("ca.crt"), ca_.certificate_pem));
  CHECK_OK(WriteFileAtomic(dir_.Path("ca.key"), ca_.key_pem, 0600));
  CHECK_OK(WriteFileAtomic(dir_.Path("server.crt"), server.certificate_pem));
  CHECK_OK(WriteFileAtomic(dir_.Path("server.key"), server.key_pem, 0600));
  CHECK_OK(WriteFileAtomic(dir_.Path("tiny.toml"), kTinyRound));
}

Deployment::~Deployment() {
  if (process_.has_value()) Kill();
}

std::string Deployment::Config(absl::string_view more) const {
  return absl::StrCat("listen_address: \"127.0.0.1:", port_, R"("
data_directory: "data"
unix_socket_path: "assayd.sock"
round_paths: "tiny.toml"
tls {
  ca_certificate_path: "ca.crt" ca_key_path: "ca.key"
  certificate_path: "server.crt" key_path: "server.key"
}
)",
                      more, "\n");
}

absl::StatusOr<absl::Duration> Deployment::Start(absl::string_view more) {
  RETURN_IF_ERROR(WriteFileAtomic(dir_.Path("assayd.conf"), Config(more)));
  const absl::Time start = absl::Now();
  SpawnOptions options = {.argv = {Program(), absl::StrCat("--config=", dir_.Path("assayd.conf"))},
                          .output_path = log_.path()};
  if (descriptor_limit_.has_value())
    options.argv = {"/bin/sh",
                    "-c",
                    absl::StrCat("ulimit -n ", *descriptor_limit_, " && exec \"$@\""),
                    "sh",
                    options.argv[0],
                    options.argv[1]};
  ASSIGN_OR_RETURN(process_, Spawn(options));
  std::optional<std::string> line;
  do {
    line = log_.WaitFor(" serv");
  } while (line.has_value() && !absl::StrContains(*line, " serving tcp=") &&
           !absl::StrContains(*line, "cannot serve"));
  if (!line.has_value() || absl::StrContains(*line, "cannot serve"))
    return absl::InternalError(absl::StrCat("assayd does not serve: ", line.value_or("silence")));
  return absl::Now() - start;
}

void Deployment::Kill() {
  CHECK_OK(SignalGroup(*process_, SIGKILL));
  CHECK_OK(WaitForExit(*process_, kPatience).status());
  process_.reset();
}

absl::StatusOr<int> Deployment::Terminate() {
  RETURN_IF_ERROR(SignalGroup(*process_, SIGTERM));
  const absl::StatusOr<int> code = WaitForExit(*process_, kPatience);
  if (code.ok()) process_.reset();
  return code;
}

absl::StatusOr<int> Deployment::RunOnce(const std::vector<std::string>& arguments,
                                        std::string* output) {
  const std::string path = dir_.Path("once.log");
  RETURN_IF_ERROR(RemoveTree(path));
  SpawnOptions options = {.argv = {Program()}, .output_path = path};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  ASSIGN_OR_RETURN(const ProcessId process, Spawn(options));
  const absl::StatusOr<int> code = WaitForExit(process, kPatience);
  if (!code.ok()) CHECK_OK(SignalGroup(process, SIGKILL));
  ASSIGN_OR_RETURN(*output, ReadFile(path));
  return code;
}

Endpoint Deployment::Unix() const {
  return {.target = absl::StrCat("unix:", dir_.Path("assayd.sock"))};
}

Endpoint Deployment::Tls() const {
  const absl::StatusOr<std::string> text = ReadFile(dir_.Path("data/address"));
  CHECK_OK(text.status());
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  return {.target = std::string(absl::StripPrefix(lines[0], "tcp ")),
          .ca_pem = ca_.certificate_pem};
}

absl::StatusOr<Endpoint> Deployment::Exchange(const std::string& path,
                                              const std::string& token) const {
  Endpoint endpoint = Tls();
  endpoint.token = token;
  ASSIGN_OR_RETURN(KeyAndCsr made, MakeKeyAndCsr("whoever"));
  ASSIGN_OR_RETURN(
      endpoint.certificate_pem,
      ExchangeForCertificate({.endpoint = endpoint, .path = path, .csr_pem = made.csr_pem}));
  endpoint.key_pem = std::move(made.key_pem);
  endpoint.token.clear();
  return endpoint;
}

absl::StatusOr<Endpoint> Deployment::AsBearer(const std::string& token) const {
  return Exchange(AccessCertificatePath(), token);
}

absl::StatusOr<Endpoint> Deployment::AsEnrolled(const std::string& worker,
                                                const std::string& token) const {
  return Exchange(WorkerCertificatePath(worker), token);
}

Endpoint Deployment::Worker(const std::string& name) const {
  const CertificateAndKey pair = IssueCertificate(ca_, name, CertificateKind::kClient);
  Endpoint endpoint = Tls();
  endpoint.certificate_pem = pair.certificate_pem;
  endpoint.key_pem = pair.key_pem;
  return endpoint;
}

v1::SubmissionSpec TinySpec(const std::string& organization, int node_count) {
  v1::SubmissionSpec spec;
  spec.set_organization(organization);
  spec.set_system("Machine");
  spec.set_benchmark("cosmoflow");
  spec.set_division("closed");
  spec.set_round("tiny");
  spec.set_dataset("cosmo32");
  spec.set_node_count(node_count);
  spec.set_status("onprem");
  const std::pair<const char*, const char*> parameters[] = {
      {"global_batch_size", "64"},
      {"opt_name", "\"sgd\""},
      {"opt_base_learning_rate", "0.001"},
      {"opt_learning_rate_warmup_epochs", "4"},
      {"opt_learning_rate_warmup_factor", "1"},
      {"opt_learning_rate_decay_boundary_epochs", "[32, 64]"},
      {"opt_learning_rate_decay_factor", "0.25"}};
  for (const auto& [key, value] : parameters) {
    v1::Hyperparameter* const parameter = spec.add_hyperparameters();
    parameter->set_key(key);
    parameter->set_json_value(value);
  }
  return spec;
}

std::vector<std::string> TinyLog() {
  return CosmoflowLog().Lines();
}

}  // namespace assay::testing
