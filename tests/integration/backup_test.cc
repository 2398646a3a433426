// The drill of a site: a backup while people submit, the coordinator killed (kill -9) under load
// and during a further backup, its data directory gone, and a coordinator made of the backup.
// Nothing that was acknowledged before the backup's event is missing, and damage of a backup is
// named.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/file.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/process.h"
#include "common/secret.h"
#include "tests/integration/deployment.h"
#include "tests/integration/fake_worker.h"
#include "tests/support/status_matchers.h"

namespace assay::testing {
namespace {

namespace fs = std::filesystem;
using Submissions = v1::SubmissionService::Stub;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Submits without pause, each request until it is acknowledged, and knows what was. Thread-safe.
class Load {
 public:
  explicit Load(const Deployment& deployment)
      : thread_([this, endpoint = deployment.Unix()] { Submit(endpoint); }) {}
  ~Load() { End(); }

  void End() {
    {
      MutexLock lock(&mutex_);
      is_over_ = true;
    }
    if (thread_.joinable()) thread_.join();
  }
  std::set<std::string> acknowledged() {
    MutexLock lock(&mutex_);
    return acknowledged_;
  }
  // Until `count` more are acknowledged; ends the program if that takes two minutes.
  void Await(size_t count) {
    MutexLock lock(&mutex_);
    const size_t target = acknowledged_.size() + count;
    while (acknowledged_.size() < target)
      CHECK(changed_.WaitFor(&mutex_, std::chrono::minutes(2))) << "nothing is acknowledged";
  }

 private:
  bool is_over() {
    MutexLock lock(&mutex_);
    return is_over_;
  }
  void Submit(const Endpoint& endpoint) {
    Client client(endpoint);
    while (!is_over()) {
      v1::CreateSubmissionRequest request;
      request.set_request_id(MakeUuid());
      *request.mutable_spec() = TinySpec("Org", 64);  // never placed: there is one worker
      const auto created =
          client.Call(client.submission(), &Submissions::CreateSubmission, request);
      if (!created.ok()) return;  // the coordinator was killed
      MutexLock lock(&mutex_);
      acknowledged_.insert(created->name());
      changed_.NotifyAll();
    }
  }

  Mutex mutex_;
  CondVar changed_;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<std::string> acknowledged_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

class BackupDrillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(deployment_.Start(), IsOk());
    Client root(deployment_.Unix());
    AddTinyDataset(&root);
    v1::CreateSubmissionRequest request;
    request.set_request_id("the-runs");
    *request.mutable_spec() = TinySpec("Org", 1);
    ASSERT_THAT(root.Call(root.submission(), &Submissions::CreateSubmission, request), IsOk());
  }

  // A run of the one entry that is placed, which leaves an artifact of its own.
  void WalkOneRun(int number) {
    FakeWorker worker(deployment_.Worker("w0"), "w0");
    std::vector<std::string> lines = TinyLog();
    lines.push_back(absl::StrCat("run ", number));
    ASSERT_THAT(worker.WalkOneRun(lines), IsOk());
  }

  // Follows a backup; `at_first` is called with its first message.
  absl::StatusOr<v1::StoreBackup> BackUp(absl::AnyInvocable<void()> at_first = [] {}) {
    Client root(deployment_.Unix());
    grpc::ClientContext context;
    PrepareCall(root.endpoint(), absl::Minutes(2), &context);
    v1::BackUpStoreRequest request;
    request.set_directory(place_);
    const auto reader = root.admin().BackUpStore(&context, request);
    v1::StoreBackup summary;
    v1::BackUpStoreResponse response;
    bool is_first = true;
    while (reader->Read(&response)) {
      if (std::exchange(is_first, false)) at_first();
      if (response.has_summary()) summary = response.summary();
    }
    const absl::Status status = FromGrpc(reader->Finish());
    if (!status.ok()) return status;
    return summary;
  }

  // What a running coordinator says of the backup.
  std::vector<std::string> Faults() {
    Client root(deployment_.Unix());
    grpc::ClientContext context;
    PrepareCall(root.endpoint(), absl::Minutes(2), &context);
    v1::VerifyStoreRequest request;
    request.set_backup_directory(place_);
    const auto reader = root.admin().VerifyStore(&context, request);
    std::vector<std::string> faults;
    v1::VerifyStoreResponse response;
    while (reader->Read(&response)) {
      if (response.has_fault())
        faults.push_back(absl::StrCat(response.fault().file(), ": ", response.fault().object()));
    }
    EXPECT_THAT(FromGrpc(reader->Finish()), IsOk());
    EXPECT_TRUE(response.has_summary());
    return faults;
  }

  int Run(const std::vector<std::string>& arguments, std::string* output) {
    const auto code = deployment_.RunOnce(arguments, output);
    CHECK_OK(code.status());
    return *code;
  }
  int Restore(const std::string& into, std::string* output) {
    return Run({absl::StrCat("--restore=", place_), absl::StrCat("--into=", into)}, output);
  }

  // The program `assay` as an operator on the coordinator's host; its exit code.
  int Assay(const std::vector<std::string>& arguments, std::string* output) {
    const char* const folder = std::getenv("ASSAY_BIN_DIR");
    const std::string path = deployment_.dir().Path("assay.out");
    CHECK_OK(RemoveTree(path));
    SpawnOptions options = {
        .argv = {JoinPath(folder == nullptr ? "build/dev/bin" : folder, "assay")},
        .environment = {absl::StrCat("ASSAY_SOCKET=", deployment_.dir().Path("assayd.sock"))},
        .output_path = path};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    const absl::StatusOr<ProcessId> process = Spawn(options);
    CHECK_OK(process.status());
    const absl::StatusOr<int> code = WaitForExit(*process, absl::Minutes(2));
    CHECK_OK(code.status());
    *output = *ReadFile(path);
    return *code;
  }

  // The numbers of all submissions.
  std::set<int64_t> Listed() {
    Client root(deployment_.Unix());
    std::set<int64_t> numbers;
    v1::ListSubmissionsRequest request;
    request.set_page_size(1000);
    do {
      const auto page = root.Call(root.submission(), &Submissions::ListSubmissions, request);
      CHECK_OK(page.status());
      for (const v1::Submission& submission : page->submissions())
        CHECK(numbers.insert(NumberOf(submission.name())).second) << submission.name();
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    return numbers;
  }

  static int64_t NumberOf(const std::string& name) {
    int64_t number = 0;
    CHECK(absl::SimpleAtoi(absl::StripPrefix(name, "submissions/e-"), &number)) << name;
    return number;
  }

  std::string SomeFile(const std::string& folder) {
    std::string path;
    for (const auto& entry : fs::recursive_directory_iterator(JoinPath(place_, folder)))
      if (entry.is_regular_file()) path = entry.path().string();
    return path;
  }

  // As a disk would: not through the second name that the coordinator's own file has.
  static void Flip(const std::string& path, int64_t offset) {
    fs::copy_file(path, path + ".flipped");
    {
      const UniqueFd fd(open((path + ".flipped").c_str(), O_RDWR | O_CLOEXEC));
      unsigned char byte = 0;
      CHECK(pread(fd.get(), &byte, 1, offset) == 1);
      byte ^= 0x20;
      CHECK(pwrite(fd.get(), &byte, 1, offset) == 1);
    }
    CHECK_OK(RenameSynced(path + ".flipped", path));
  }

  Deployment deployment_;
  const std::string place_ = deployment_.dir().Path("backup");
  const std::string data_ = deployment_.dir().Path("data");
};

TEST_F(BackupDrillTest, NothingAcknowledgedBeforeTheBackupIsMissingAfterAKill) {
  WalkOneRun(1);
  Load load(deployment_);
  load.Await(20);
  const auto first = BackUp();
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->linked_artifact_count(), 1);

  WalkOneRun(2);
  load.Await(20);
  const std::set<std::string> before = load.acknowledged();
  const auto second = BackUp();
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(second->kept_artifact_count(), 1) << "the second takes what is new";
  EXPECT_EQ(second->linked_artifact_count(), 1);
  EXPECT_GT(second->event_seq(), first->event_seq());

  load.Await(20);
  // Whichever of the two is whole now: both are of before the kill.
  static_cast<void>(BackUp([this] { deployment_.Kill(); }));
  load.End();
  fs::rename(data_, deployment_.dir().Path("lost"));

  std::string output;
  EXPECT_EQ(Run({absl::StrCat("--verify_backup=", place_)}, &output), 0) << output;
  ASSERT_EQ(Restore(data_, &output), 0) << output;
  EXPECT_EQ(Restore(data_, &output), 2) << "nothing is overwritten";
  ASSERT_THAT(deployment_.Start(), IsOk());

  // Ids are given without gaps: all up to some event means all up to some number.
  const std::set<int64_t> restored = Listed();
  EXPECT_EQ(*restored.begin(), 1);
  EXPECT_EQ(*restored.rbegin(), std::ssize(restored));
  for (const std::string& name : before)
    EXPECT_TRUE(restored.contains(NumberOf(name))) << name << " was acknowledged before the backup";
  Client root(deployment_.Unix());
  const auto info =
      root.Call(root.admin(), &v1::AdminService::Stub::GetServerInfo, v1::GetServerInfoRequest());
  ASSERT_THAT(info, IsOk());
  EXPECT_GE(info->event_seq(), second->event_seq());
  EXPECT_EQ(*ReadFile(JoinPath(data_, "secret")), *ReadFile(deployment_.dir().Path("lost/secret")));

  WalkOneRun(3);
  EXPECT_THAT(BackUp(), IsOk()) << "it goes on, and so do its backups";
  EXPECT_THAT(Faults(), IsEmpty());
}

TEST_F(BackupDrillTest, DamageIsNamedByFileAndObject) {
  WalkOneRun(1);
  ASSERT_THAT(BackUp(), IsOk());
  EXPECT_THAT(Faults(), IsEmpty());
  std::string output;

  const std::string artifact = SomeFile("artifacts");
  Flip(artifact, 100);
  const std::string name =
      absl::StrCat("artifacts/", fs::path(artifact).parent_path().filename().string(), "/",
                   fs::path(artifact).filename().string());
  EXPECT_THAT(Faults(), Contains(AllOf(HasSubstr(name), HasSubstr("result_1.txt of run r-1"))));
  EXPECT_EQ(Restore(deployment_.dir().Path("without"), &output), 1);
  EXPECT_THAT(output, AllOf(HasSubstr(name), HasSubstr("result_1.txt of run r-1"),
                            HasSubstr("0 of 1 artifacts, 1 faults")));

  for (const auto& entry : fs::directory_iterator(place_))
    if (entry.path().extension() == ".db") Flip(entry.path().string(), 3 * 4096 + 100);
  EXPECT_THAT(Faults(), Contains(HasSubstr(".db: page 4 (")));
  EXPECT_EQ(Restore(deployment_.dir().Path("none"), &output), 1);
  EXPECT_THAT(output, AllOf(HasSubstr(".db: page 4 ("), HasSubstr("nothing was restored")));
  EXPECT_FALSE(FileExists(deployment_.dir().Path("none")));
}

TEST_F(BackupDrillTest, ByTheCommandLine) {
  WalkOneRun(1);
  std::string output;
  EXPECT_EQ(Assay({"admin", "backup", place_, "--json"}, &output), 0) << output;
  EXPECT_THAT(output, AllOf(HasSubstr("\"linked_artifact_count\": 1"), HasSubstr("\"event_seq\"")));
  EXPECT_EQ(Assay({"admin", "verify", "--backup", place_}, &output), 0) << output;
  EXPECT_THAT(output, HasSubstr("0 faults"));
  EXPECT_EQ(Assay({"admin", "backup", "backup"}, &output), 2);
  EXPECT_THAT(output, HasSubstr("absolute path"));

  EXPECT_EQ(Assay({"admin", "usage", "--json"}, &output), 0) << output;
  EXPECT_THAT(output, AllOf(HasSubstr("\"database\""), HasSubstr("\"artifacts: logs\""),
                            HasSubstr("\"free_bytes\"")));

  const std::string restored = deployment_.dir().Path("restored");
  EXPECT_EQ(Assay({"admin", "restore", place_, restored}, &output), 0) << output;
  EXPECT_THAT(output, HasSubstr("1 of 1 artifacts, 0 faults"));
  EXPECT_EQ(Assay({"admin", "restore", place_, restored}, &output), 2);
  EXPECT_THAT(output, HasSubstr("not empty"));
}

TEST_F(BackupDrillTest, WithoutADaemonToo) {
  WalkOneRun(1);
  const std::string config = deployment_.dir().Path("assayd.conf");
  const std::vector<std::string> backup = {"--config", config, absl::StrCat("--backup=", place_),
                                           "--json"};
  std::string output;
  EXPECT_EQ(Run(backup, &output), 2) << "a daemon runs";
  EXPECT_THAT(output, HasSubstr("assay admin backup"));
  deployment_.Kill();

  EXPECT_EQ(Run(backup, &output), 0) << output;

  EXPECT_THAT(output,
              AllOf(HasSubstr("\"summary\""), HasSubstr("\"linked_artifact_count\":\"1\"")));
  EXPECT_EQ(Run({absl::StrCat("--verify_backup=", place_), "--json"}, &output), 0) << output;
}

TEST_F(BackupDrillTest, ABackupIsInTheAudit) {
  ASSERT_THAT(BackUp(), IsOk());
  std::string output;
  EXPECT_EQ(Assay({"admin", "audit", "--json"}, &output), 0);
  EXPECT_THAT(output, AllOf(HasSubstr("StoreBackedUp"), HasSubstr(place_)));
}

TEST_F(BackupDrillTest, NothingIsPrunedButWhatTheConfigurationLetsGo) {
  WalkOneRun(1);
  std::string output;
  EXPECT_NE(Assay({"admin", "prune", "--apply"}, &output), 0);
  EXPECT_THAT(output, HasSubstr("retention { telemetry_days: 365 }"));

  deployment_.Kill();
  ASSERT_THAT(deployment_.Start("retention { telemetry_days: 1 }"), IsOk());

  EXPECT_EQ(Assay({"admin", "prune", "--apply", "--json"}, &output), 0);
  EXPECT_THAT(output, HasSubstr("\"file_count\": 0")) << "nothing is a day old";
  EXPECT_NE(Assay({"admin", "prune", "--apply", "--dry-run"}, &output), 0);
  EXPECT_THAT(output, HasSubstr("exclude each other"));
}

}  // namespace
}  // namespace assay::testing
