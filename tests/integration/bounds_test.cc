// What callers may send and what becomes of too much of it: a real assayd and hostile clients.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"

#include "common/sha256.h"
#include "tests/integration/service_fixture.h"

namespace assay::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

using BoundsTest = ServiceTest;

// Puts `text` into the first text field of the message, or of a message in it. False if there is
// none.
bool FillFirstText(const std::string& text, Message* message) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    if (field->is_repeated()) continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      reflection.SetString(message, field, text);
      return true;
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
        FillFirstText(text, reflection.MutableMessage(message, field)))
      return true;
  }
  return false;
}

TEST_F(BoundsTest, EveryMethodRefusesWhatIsTooLargeBeforeItLooksAtIt) {
  Client worker(deployment_.Worker("w0"));
  const FileDescriptor* const files[] = {v1::CreateSubmissionRequest::descriptor()->file(),
                                         v1::SynchronizeRequest::descriptor()->file(),
                                         v1::CreateTokenRequest::descriptor()->file()};
  int count = 0;
  for (const FileDescriptor* file : files) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        const MethodDescriptor* method = file->service(s)->method(m);
        const std::unique_ptr<Message> request(google::protobuf::MessageFactory::generated_factory()
                                                   ->GetPrototype(method->input_type())
                                                   ->New());
        if (!FillFirstText(std::string(5000, 'x'), request.get())) continue;
        const bool is_agents = absl::EndsWith(file->service(s)->name(), "WorkerService");

        const absl::Status status =
            RawStatus(is_agents ? &worker : &*root_,
                      absl::StrCat("/", file->service(s)->full_name(), "/", method->name()),
                      request->SerializeAsString());

        EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                     AllOf(HasSubstr("5000 bytes"), HasSubstr("at most"))))
            << method->full_name();
        ++count;
      }
    }
  }
  EXPECT_GT(count, 20);
}

TEST_F(BoundsTest, AWorkerWithALargeLabelIsRefusedAndNobodyElseNotices) {
  Client worker(deployment_.Worker("w0"));
  v1::SynchronizeRequest request;
  request.set_worker("workers/w0");
  request.set_incarnation("i1");
  request.mutable_status()->set_phase(v1::WorkerStatus::IDLE);
  (*request.mutable_labels())["rack"] = std::string(1 << 20, '\\');

  EXPECT_THAT(worker.Call(worker.worker(), &Workers::Synchronize, request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("labels.value")));

  const auto listed = root_->Call(root_->admin(), &Admin::ListWorkers, v1::ListWorkersRequest());
  ASSERT_THAT(listed, IsOk());
  EXPECT_EQ(listed->workers_size(), 0);
}

TEST_F(BoundsTest, NoMessageIsLargerThanABatchOfEvents) {
  v1::GetSubmissionRequest request;
  request.set_name(std::string((1 << 20) + (1 << 18) + 100, 'x'));
  EXPECT_THAT(root_->Call(root_->submission(), &Submissions::GetSubmission, request),
              StatusIs(absl::StatusCode::kResourceExhausted));

  // What is nowhere near is cut off at its announcement, before anybody keeps it.
  request.set_name(std::string(64 << 20, 'x'));
  Client other(deployment_.Unix());
  EXPECT_THAT(other.Call(other.submission(), &Submissions::GetSubmission, request),
              StatusIs(absl::StatusCode::kUnavailable));
}

// ---------------------------------------------------------------------------------- other people

TEST_F(BoundsTest, WhatIsARivalsDoesNotExistInTheSameWords) {
  const std::string name = Create(&*root_, TinySpec("Rival", 1))->name();
  FakeWorker worker(deployment_.Worker("w0"), "w0");
  ASSERT_THAT(worker.AwaitRun(), IsOk());
  const std::string log = "a rival's log";
  ASSERT_THAT(worker.Upload("a.txt", log, Sha256Hex(log)), IsOk());
  Client org = WithToken("submitter", "Org");
  const auto ask = [&](const std::string& method, const auto& request,
                       const std::string& resource) {
    const absl::Status status =
        RawStatus(&org, "/assay.v1.SubmissionService/" + method, request.SerializeAsString());
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound,
                                 resource + " does not exist, or is not of your organization"))
        << method;
  };

  for (const std::string& submission : {name, std::string("submissions/e-99")}) {
    v1::GetSubmissionRequest get;
    get.set_name(submission);
    for (const char* method : {"GetSubmission", "CancelSubmission", "ExplainSubmission"})
      ask(method, get, submission);  // the name is the first field of all three
    v1::ListRunsRequest list;
    list.set_submission(submission);
    ask("ListRuns", list, submission);
    v1::WatchEventsRequest watch;
    watch.set_submission(submission);
    ask("WatchEvents", watch, submission);
  }
  for (const std::string& run : {worker.desired().run(), std::string("runs/r-99")}) {
    v1::GetRunRequest get;
    get.set_name(run);
    ask("GetRun", get, run);
    v1::WatchRunEventsRequest watch;
    watch.set_run(run);
    ask("WatchRunEvents", watch, run);
  }
  for (const std::string& bytes : {log, std::string("nobody's log")}) {
    v1::DownloadArtifactRequest get;
    get.set_sha256(Sha256Hex(bytes));
    ask("DownloadArtifact", get, "artifacts/" + get.sha256());
  }
}

TEST_F(BoundsTest, OnlyOperatorsLearnWhoElseUsedANode) {
  Client submitter = WithToken("submitter", "Org");
  Client reviewer = WithToken("reviewer", "");
  const std::string name = Create(&*root_, TinySpec("Org", 1))->runs(0);
  FakeWorker worker(deployment_.Worker("w0"), "w0");
  ASSERT_THAT(worker.AwaitRun(), IsOk());
  const std::string names = "who else";
  ASSERT_THAT(worker.Upload("foreign_0.jsonl", names, Sha256Hex(names)), IsOk());
  ASSERT_THAT(worker.Upload("telemetry_0.bin", "numbers", Sha256Hex("numbers")), IsOk());

  const auto files_for = [&name](Client* client) {
    v1::GetRunRequest get;
    get.set_name(name);
    std::vector<v1::Run> runs = {
        client->Call(client->submission(), &Submissions::GetRun, get).value()};
    const v1::ListRunsResponse list =
        client->Call(client->submission(), &Submissions::ListRuns, v1::ListRunsRequest()).value();
    runs.insert(runs.end(), list.runs().begin(), list.runs().end());
    std::vector<std::string> files;
    for (const v1::Run& run : runs)
      for (const v1::ArtifactRef& file : run.artifacts())
        files.push_back(file.file_name());
    return files;
  };
  EXPECT_THAT(files_for(&*root_), Contains("foreign_0.jsonl").Times(2));
  EXPECT_EQ(Download(&*root_, Sha256Hex(names)), names);
  for (Client* const client : {&submitter, &reviewer}) {
    EXPECT_THAT(files_for(client), ElementsAre("telemetry_0.bin", "telemetry_0.bin"));
    EXPECT_EQ(Download(client, Sha256Hex("numbers")), "numbers");
    v1::DownloadArtifactRequest request;
    request.set_sha256(Sha256Hex(names));
    grpc::ClientContext context;
    PrepareCall(client->endpoint(), absl::Seconds(60), &context);
    v1::ArtifactChunk chunk;
    const auto reader = client->submission().DownloadArtifact(&context, request);
    EXPECT_FALSE(reader->Read(&chunk));
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  }
}

TEST_F(BoundsTest, WhatANodeDoesIsForThoseWhoMaySeeItsRun) {
  Client submitter = WithToken("submitter", "Org");
  Client rival = WithToken("submitter", "Rival");
  Client reviewer = WithToken("reviewer", "");
  ASSERT_THAT(Create(&*root_, TinySpec("Org", 1)), IsOk());
  FakeWorker worker(deployment_.Worker("w0"), "w0");
  ASSERT_THAT(worker.AwaitRun(), IsOk());
  v1::NodeFigures figures;
  figures.set_run_cpu_share(0.75);
  worker.SetFigures(figures);
  ASSERT_THAT(worker.Synchronize(absl::ZeroDuration()), IsOk());

  const auto is_told = [](Client* client) {
    std::set<bool> told;
    for (const bool is_brief : {false, true}) {
      v1::ListWorkersRequest list;
      list.set_is_brief(is_brief);
      const auto listed = client->Call(client->admin(), &Admin::ListWorkers, list).value();
      EXPECT_EQ(listed.workers_size(), 1);
      const bool is_seen = listed.workers(0).figures().run_cpu_share() == 0.75;
      EXPECT_EQ(!listed.workers(0).run().empty(), is_seen) << "the run is told with its figures";
      told.insert(is_seen);
    }
    v1::GetWorkerRequest get;
    get.set_name("workers/w0");
    const auto found = client->Call(client->admin(), &Admin::GetWorker, get).value();
    told.insert(found.has_figures());
    return told;
  };
  for (Client* const client : {&*root_, &submitter, &reviewer})
    EXPECT_THAT(is_told(client), ElementsAre(true));
  for (Client* const client : {&rival, &worker.client()})
    EXPECT_THAT(is_told(client), ElementsAre(false));

  figures.set_run_cpu_share(std::numeric_limits<double>::quiet_NaN());
  worker.SetFigures(figures);
  EXPECT_THAT(worker.Synchronize(absl::ZeroDuration()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("run_cpu_share")));
}

TEST_F(BoundsTest, ARequestIdIsThatOfItsOrganization) {
  Client org = WithToken("submitter", "Org");
  Client rival = WithToken("submitter", "Rival");  // of the same name

  const auto first = Create(&org, TinySpec("Org", 1), "nightly");
  const auto second = Create(&rival, TinySpec("Rival", 1), "nightly");

  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  EXPECT_NE(first->name(), second->name());
  EXPECT_EQ(second->spec().organization(), "Rival");
  EXPECT_EQ(Create(&org, TinySpec("Org", 1), "nightly")->name(), first->name());
}

TEST_F(BoundsTest, AnUnknownBackendOrStatusIsRefusedWithTheChoices) {
  v1::PlanSubmissionRequest plan;
  *plan.mutable_spec() = TinySpec("Org", 1);
  plan.mutable_spec()->mutable_trainer()->set_backend("evil");
  EXPECT_THAT(root_->Call(root_->submission(), &Submissions::PlanSubmission, plan),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("choose cuda")));
  plan.mutable_spec()->clear_trainer();
  plan.mutable_spec()->set_status("zz");
  EXPECT_THAT(Create(&*root_, plan.spec()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("choose onprem")));
}

TEST_F(BoundsTest, ARefusedTokenIsInTheLogWithItsPeerAndWithoutItself) {
  EXPECT_THAT(deployment_.AsBearer("assay_0123456789abcdefghijklmnopqrstuvwxyz"),
              StatusIs(absl::StatusCode::kUnauthenticated));

  const std::optional<std::string> line = deployment_.log().WaitFor("refused peer=");
  ASSERT_TRUE(line.has_value());
  EXPECT_THAT(*line,
              AllOf(HasSubstr("access-certificate"), Not(HasSubstr("0123456789abcdefghij"))));
}

// ----------------------------------------------------------------------------------------- uploads

class UploadsTest : public ServiceTest {
 protected:
  // Digests of all that is in the artifact store, unfinished uploads included.
  std::vector<std::string> Stored() {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(deployment_.dir().Path("data/artifacts"))) {
      if (entry.is_regular_file()) names.push_back(entry.path().filename().string());
    }
    return names;
  }

  // Uploads `bytes` as a.txt of `run`, announced with the digest of `announced`.
  absl::Status Upload(Client* client, const std::string& run, int64_t generation,
                      const std::string& bytes, const std::string& announced) {
    grpc::ClientContext context;
    PrepareCall(client->endpoint(), absl::Seconds(60), &context);
    v1::UploadArtifactResponse response;
    const auto writer = client->worker().UploadArtifact(&context, &response);
    v1::UploadArtifactRequest message;
    v1::UploadHeader* const header = message.mutable_header();
    header->set_run(run);
    header->set_generation(generation);
    header->set_file_name("a.txt");
    header->set_sha256(Sha256Hex(announced));
    header->set_size_bytes(std::ssize(announced));
    message.set_data(bytes);
    writer->Write(message);
    writer->WritesDone();
    return FromGrpc(writer->Finish());
  }

  // An import of one entry with these logs, announced with the digests of `announced`.
  absl::StatusOr<v1::Submission> Import(const std::string& source,
                                        const std::vector<std::string>& logs,
                                        const std::vector<std::string>& announced,
                                        bool is_whole = true) {
    grpc::ClientContext context;
    PrepareCall(root_->endpoint(), absl::Seconds(60), &context);
    v1::Submission entry;
    const auto writer = root_->submission().ImportSubmission(&context, &entry);
    v1::ImportSubmissionRequest message;
    message.mutable_header()->set_round("tiny");
    message.mutable_header()->set_source_path(source);
    *message.mutable_header()->mutable_spec() = TinySpec("Org", 1);
    bool is_open = writer->Write(message);
    for (size_t i = 0; is_open && i < logs.size(); ++i) {
      v1::ImportedRun* const run = message.mutable_run();
      run->set_file_name(absl::StrCat("result_", i, ".txt"));
      run->set_sha256(Sha256Hex(announced[i]));
      run->set_size_bytes(std::ssize(announced[i]));
      is_open = writer->Write(message);
      for (size_t begin = 0; is_open && begin < logs[i].size(); begin += 50'000) {
        message.set_log(logs[i].substr(begin, 50'000));
        is_open = writer->Write(message);
      }
    }
    message.Clear();
    if (is_open && (!is_whole || writer->Write(message))) writer->WritesDone();
    const absl::Status status = FromGrpc(writer->Finish());
    if (!status.ok()) return status;
    return entry;
  }
};

TEST_F(UploadsTest, AnImportThatStopsHalfWayIsNoEntry) {
  EXPECT_THAT(Import("x/y", {"log\n"}, {"log\n"}, /*is_whole=*/false),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(Import("x/y", {"log\n"}, {"log\n"}), IsOk());
}

TEST_F(UploadsTest, OnlyTheWorkerOfARunStoresAnythingOfIt) {
  ASSERT_THAT(Create(&*root_, TinySpec("Org", 1)), IsOk());
  FakeWorker worker(deployment_.Worker("w0"), "w0");
  ASSERT_THAT(worker.AwaitRun(), IsOk());
  Client stranger(deployment_.Worker("w1"));
  const std::string run = worker.desired().run();

  EXPECT_THAT(Upload(&stranger, run, 1, "bytes", "bytes"),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(Upload(&worker.client(), run, 7, "bytes", "bytes"),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(Upload(&worker.client(), "runs/r-99", 1, "bytes", "bytes"),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Upload(&worker.client(), run, 1, "bytes", "other"),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(Upload(&worker.client(), run, 1, "bytes and more", "bytes"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Stored(), IsEmpty());

  EXPECT_THAT(Upload(&worker.client(), run, 1, "bytes", "bytes"), IsOk());
  EXPECT_THAT(Upload(&worker.client(), run, 1, "other", "other"),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(Stored(), ElementsAre(Sha256Hex("bytes")));
}

TEST_F(UploadsTest, AnImportComesInPiecesAndOnce) {
  std::string log;
  for (const std::string& line : TinyLog())
    absl::StrAppend(&log, line, "\n");
  const std::string large = log + std::string(300'000, '#') + "\n";

  const auto entry = Import("Org/results/box", {log, large, log}, {log, large, log});

  ASSERT_THAT(entry, IsOk());
  EXPECT_TRUE(entry->is_imported());
  ASSERT_EQ(entry->runs_size(), 3);
  EXPECT_EQ(entry->spec().run_count(), 3);
  EXPECT_EQ(Download(&*root_, Sha256Hex(large)), large);
  EXPECT_EQ(Import("Org/results/box", {"other"}, {"other"})->name(), entry->name());
  EXPECT_THAT(Stored(), UnorderedElementsAre(Sha256Hex(log), Sha256Hex(large)));
}

TEST_F(UploadsTest, AnImportThatIsRefusedLeavesNothing) {
  EXPECT_THAT(Import("a", {"one", "two"}, {"one", "TWO"}), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(Import("", {"one"}, {"one"}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Import("a", {}, {}), StatusIs(absl::StatusCode::kInvalidArgument));

  EXPECT_THAT(Stored(), IsEmpty());
}

}  // namespace
}  // namespace assay::testing
