// What an agent says to the coordinator, without an agent: the test decides each word.

#ifndef TESTS_INTEGRATION_FAKE_WORKER_H_
#define TESTS_INTEGRATION_FAKE_WORKER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "tests/integration/deployment.h"

namespace assay::testing {

class FakeWorker {
 public:
  FakeWorker(const Endpoint& endpoint, std::string name);

  // One Synchronize with the present status, which the coordinator may hold for so long.
  absl::StatusOr<v1::DesiredState> Synchronize(absl::Duration poll = absl::Seconds(1));
  // Synchronizes until told to execute a run, and says that it does.
  absl::Status AwaitRun();
  // Streams `lines` as log lines with seqs from `first_seq`; what was acknowledged last.
  absl::StatusOr<int64_t> SendLines(const std::vector<std::string>& lines, int64_t first_seq);
  // Streams one event as it is; what was acknowledged.
  absl::StatusOr<int64_t> SendEvent(const v1::RunEvent& event);
  // Uploads an artifact of the run, announced with `sha256`.
  absl::StatusOr<v1::ArtifactRef> Upload(const std::string& file_name, const std::string& bytes,
                                         const std::string& sha256);
  // From idle to idle: executes the next run, whose log is `lines`.
  absl::Status WalkOneRun(const std::vector<std::string>& lines);

  // The end of the run that it executes, until the coordinator has it and the worker is idle.
  absl::Status EndRun(int exit_code);

  // What it says with each call from now on.
  void SetFigures(const v1::NodeFigures& figures) { figures_ = figures; }

  const v1::DesiredState& desired() const { return desired_; }
  Client& client() { return client_; }

 private:
  absl::StatusOr<int64_t> Stream(const std::vector<v1::EventBatch>& batches);

  Client client_;
  const std::string name_;
  v1::WorkerStatus status_;
  std::optional<v1::NodeFigures> figures_;
  v1::DesiredState desired_;  // the last EXECUTE
};

// Registers the dataset of TinySpec.
void AddTinyDataset(Client* operator_client);

// All events of a submission until it has ended.
std::vector<v1::Event> WatchToTheEnd(Client* client, const std::string& submission);
// The log lines of a run, as stored.
std::vector<std::string> WatchRunLines(Client* client, const std::string& run);
// The bytes of an artifact.
std::string Download(Client* client, const std::string& sha256);

// Calls of services that have no stubs here: serialised messages in and out.
std::string RawCall(Client* client, const std::string& method, const std::string& request);
std::string RawStreamCall(Client* client, const std::string& method, const std::string& request);
// How the coordinator ends a call of `method` with one message.
absl::Status RawStatus(Client* client, const std::string& method, const std::string& request = "");

}  // namespace assay::testing

#endif  // TESTS_INTEGRATION_FAKE_WORKER_H_
