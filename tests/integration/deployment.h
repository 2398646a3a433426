// A real assayd in a temporary directory, with its own CA, and real clients of it.

#ifndef TESTS_INTEGRATION_DEPLOYMENT_H_
#define TESTS_INTEGRATION_DEPLOYMENT_H_

#include <grpcpp/channel.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "assay/v1/admin_service.grpc.pb.h"
#include "assay/v1/submission_service.grpc.pb.h"
#include "assay/v1/worker_service.grpc.pb.h"

#include "common/pki.h"
#include "common/process.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_grpc.h"
#include "tests/support/log_tail.h"
#include "tests/support/temp_dir.h"

namespace assay::testing {

// One caller: a channel, and a stub for each service.
class Client {
 public:
  explicit Client(Endpoint endpoint);

  // One unary call: client.Call(client.admin(), &v1::AdminService::Stub::ListTokens, request).
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(Stub& stub,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request) {
    grpc::ClientContext context;
    PrepareCall(endpoint_, absl::Seconds(60), &context);
    Response response;
    const absl::Status status = FromGrpc((stub.*method)(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  v1::SubmissionService::Stub& submission() { return *submission_; }
  v1::WorkerService::Stub& worker() { return *worker_; }
  v1::EnrolmentService::Stub& enrolment() { return *enrolment_; }
  v1::AdminService::Stub& admin() { return *admin_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  const Endpoint& endpoint() const { return endpoint_; }

 private:
  const Endpoint endpoint_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::SubmissionService::Stub> submission_;
  const std::unique_ptr<v1::WorkerService::Stub> worker_;
  const std::unique_ptr<v1::EnrolmentService::Stub> enrolment_;
  const std::unique_ptr<v1::AdminService::Stub> admin_;
};

class Deployment {
 public:
  Deployment();
  ~Deployment();

  // The configuration, as text proto; `more` is added to it at the next Start.
  std::string Config(absl::string_view more) const;

  // The TCP port from the next Start on; at first the kernel chooses.
  void set_port(const std::string& port) { port_ = port; }

  // How many descriptors assayd may have open from the next Start on; at first as many as the test.
  void set_descriptor_limit(int limit) { descriptor_limit_ = limit; }

  // Starts assayd and waits until it serves. Returns how long that took.
  absl::StatusOr<absl::Duration> Start(absl::string_view more = "");
  // kill -9, and waits for the end.
  void Kill();
  // TERM, and waits; returns the exit code.
  absl::StatusOr<int> Terminate();
  // Runs assayd with `arguments` to its end; its exit code, and its output in `output`.
  absl::StatusOr<int> RunOnce(const std::vector<std::string>& arguments, std::string* output);

  // The running assayd.
  pid_t pid() const { return process_->pid; }

  Endpoint Unix() const;
  // The TCP address and the CA; alone they are enough for nothing but the two below.
  Endpoint Tls() const;
  // The same with a certificate: of the bearer of an access token, or of a worker with an enrolment
  // token.
  absl::StatusOr<Endpoint> AsBearer(const std::string& token) const;
  absl::StatusOr<Endpoint> AsEnrolled(const std::string& worker, const std::string& token) const;
  // A worker with a certificate made here, not enrolled.
  Endpoint Worker(const std::string& name) const;

  // Things that a test puts beside the data.
  const TempDir& dir() const { return dir_; }
  const CertificateAndKey& ca() const { return ca_; }
  LogTail& log() { return log_; }

 private:
  absl::StatusOr<Endpoint> Exchange(const std::string& path, const std::string& token) const;

  TempDir dir_;
  std::string port_ = "0";
  std::optional<int> descriptor_limit_;
  CertificateAndKey ca_;
  LogTail log_;
  std::optional<ProcessId> process_;
};

// A key and a certificate for it that `ca` signed.
CertificateAndKey IssueCertificate(const CertificateAndKey& ca, const std::string& name,
                                   CertificateKind kind);

// A spec that the round "tiny" of the deployment accepts: three runs on `node_count` workers.
v1::SubmissionSpec TinySpec(const std::string& organization, int node_count);

// A log that the round judges converged and compliant, in lines.
std::vector<std::string> TinyLog();

}  // namespace assay::testing

#endif  // TESTS_INTEGRATION_DEPLOYMENT_H_
