// kill -9 of the coordinator, again and again, under a load of submissions and event streams.
//
// Two clients work without pause and repeat what was not acknowledged, as real ones do. The test
// kills assayd each time both have got further, 200 times (ASSAY_KILL_COUNT for more), and then
// compares what was acknowledged with what is there: nothing lost, nothing doubled, no id reused,
// and the events of the run without a gap.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/mutex.h"
#include "common/secret.h"
#include "tests/integration/deployment.h"
#include "tests/integration/fake_worker.h"
#include "tests/support/status_matchers.h"

namespace assay::testing {
namespace {

using Submissions = v1::SubmissionService::Stub;

// Between two kills.
constexpr int64_t kSubmissionsPerLife = 2;
constexpr int64_t kEventsPerLife = 20;

int KillCount() {
  const char* const text = std::getenv("ASSAY_KILL_COUNT");
  int count = 200;
  if (text != nullptr) CHECK(absl::SimpleAtoi(text, &count));
  return count;
}

std::string LineOf(int64_t seq) {
  return absl::StrCat("line ", seq);
}

// What has been acknowledged. Thread-safe.
class Ledger {
 public:
  void Submitted(const std::string& request_id, const std::string& name) {
    MutexLock lock(&mutex_);
    submissions_.emplace(request_id, name);
    changed_.NotifyAll();
  }
  void Durable(int64_t seq) {
    MutexLock lock(&mutex_);
    durable_seq_ = std::max(durable_seq_, seq);
    changed_.NotifyAll();
  }
  void Quit() {
    MutexLock lock(&mutex_);
    is_over_ = true;
  }
  bool is_over() {
    MutexLock lock(&mutex_);
    return is_over_;
  }
  // Waits until both loads have got further by a life's worth; ends the program if they stand still
  // for two minutes.
  void AwaitProgress() {
    MutexLock lock(&mutex_);
    const size_t submissions = submissions_.size() + kSubmissionsPerLife;
    const int64_t seq = durable_seq_ + kEventsPerLife;
    while (submissions_.size() < submissions || durable_seq_ < seq)
      CHECK(changed_.WaitFor(&mutex_, std::chrono::minutes(2))) << "nothing is acknowledged";
  }
  std::map<std::string, std::string> submissions() {
    MutexLock lock(&mutex_);
    return submissions_;
  }
  int64_t durable_seq() {
    MutexLock lock(&mutex_);
    return durable_seq_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::string> submissions_ ABSL_GUARDED_BY(mutex_);  // by request_id
  int64_t durable_seq_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Submits, each request until it is acknowledged.
void SubmitForEver(const Deployment& deployment, Ledger* ledger) {
  Client client(deployment.Unix());
  while (!ledger->is_over()) {
    v1::CreateSubmissionRequest request;
    request.set_request_id(MakeUuid());
    *request.mutable_spec() = TinySpec("Org", 64);  // never placed: there is one worker
    for (;;) {
      const auto created =
          client.Call(client.submission(), &Submissions::CreateSubmission, request);
      if (created.ok()) {
        ledger->Submitted(request.request_id(), created->name());
        break;
      }
      CHECK(absl::IsUnavailable(created.status())) << created.status();
      static_cast<void>(client.channel()->WaitForConnected(std::chrono::system_clock::now() +
                                                           std::chrono::seconds(60)));
    }
  }
}

// One stream, until it breaks: batches from `next` on, each acknowledgement noted.
void StreamOnce(FakeWorker* worker, int64_t next, Ledger* ledger) {
  grpc::ClientContext context;
  PrepareCall(worker->client().endpoint(), absl::Minutes(5), &context);
  const auto stream = worker->client().worker().StreamEvents(&context);
  for (bool is_open = true; is_open && !ledger->is_over();) {
    v1::EventBatch batch;
    batch.set_run(worker->desired().run());
    batch.set_generation(worker->desired().generation());
    for (int i = 0; i < 10; ++i) {
      v1::RunEvent* const event = batch.add_events();
      event->set_seq(next++);
      event->set_kind(v1::RunEvent::LOG_LINE);
      event->set_text(LineOf(event->seq()));
    }
    v1::EventAck ack;
    // Two batches are under way at a time, so a kill can fall between commit and acknowledgement.
    is_open = stream->Write(batch) && (next < 20 || stream->Read(&ack));
    if (is_open) ledger->Durable(ack.durable_seq());
  }
  context.TryCancel();
  static_cast<void>(stream->Finish());
}

void StreamForEver(FakeWorker* worker, Ledger* ledger) {
  while (!ledger->is_over()) {
    StreamOnce(worker, ledger->durable_seq() + 1, ledger);
    static_cast<void>(worker->client().channel()->WaitForConnected(
        std::chrono::system_clock::now() + std::chrono::seconds(60)));
  }
}

// The names of all submissions, as listed.
std::vector<std::string> ListAll(Client* client) {
  std::vector<std::string> names;
  v1::ListSubmissionsRequest request;
  request.set_page_size(1000);
  do {
    const auto page = client->Call(client->submission(), &Submissions::ListSubmissions, request);
    CHECK_OK(page.status());
    for (const v1::Submission& submission : page->submissions())
      names.push_back(submission.name());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return names;
}

TEST(CrashTest, NothingAcknowledgedIsLostDoubledOrRenamedByKills) {
  Deployment deployment;
  ASSERT_THAT(deployment.Start(), IsOk());
  std::vector<absl::Duration> ready;
  Ledger ledger;
  std::string run;
  {
    Client root(deployment.Unix());
    AddTinyDataset(&root);
    v1::CreateSubmissionRequest request;
    request.set_request_id("the-run");
    *request.mutable_spec() = TinySpec("Org", 1);
    ASSERT_THAT(root.Call(root.submission(), &Submissions::CreateSubmission, request), IsOk());
    ledger.Submitted("the-run", "submissions/e-1");
  }
  // The port is the kernel's choice at each start, so the worker comes through the fixed one.
  const std::string port = deployment.Tls().target.substr(deployment.Tls().target.rfind(':') + 1);
  FakeWorker worker(deployment.Worker("w0"), "w0");
  ASSERT_THAT(worker.AwaitRun(), IsOk());
  run = worker.desired().run();
  deployment.set_port(port);

  std::thread submitter([&] { SubmitForEver(deployment, &ledger); });
  std::thread streamer([&] { StreamForEver(&worker, &ledger); });
  for (int i = 0; i < KillCount(); ++i) {
    ledger.AwaitProgress();
    deployment.Kill();
    const absl::StatusOr<absl::Duration> duration = deployment.Start();
    ASSERT_THAT(duration, IsOk());
    ready.push_back(*duration);
  }
  ledger.AwaitProgress();
  ledger.Quit();
  submitter.join();
  streamer.join();

  Client root(deployment.Unix());
  const std::vector<std::string> listed = ListAll(&root);
  const std::set<std::string> there(listed.begin(), listed.end());
  EXPECT_EQ(there.size(), listed.size()) << "an id was given twice";
  std::set<std::string> acknowledged;
  for (const auto& [request_id, name] : ledger.submissions()) {
    EXPECT_TRUE(acknowledged.insert(name).second) << name << " was acknowledged twice";
    EXPECT_TRUE(there.contains(name)) << name << " was acknowledged and is lost";
  }
  // Each request was repeated until it was acknowledged, so nothing else may be there.
  EXPECT_EQ(there, acknowledged);

  const std::vector<std::string> lines = WatchRunLines(&root, run);  // checks for gaps
  EXPECT_GE(std::ssize(lines), ledger.durable_seq());
  for (size_t i = 0; i < lines.size(); ++i)
    ASSERT_EQ(lines[i], LineOf(static_cast<int64_t>(i) + 1));

  std::sort(ready.begin(), ready.end());
  LOG(INFO) << "kills=" << ready.size() << " submissions=" << listed.size()
            << " events=" << lines.size() << " ready_median=" << ready[ready.size() / 2]
            << " ready_max=" << ready.back();
}

}  // namespace
}  // namespace assay::testing
