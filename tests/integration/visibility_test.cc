// Who sees which entry, by every method that reads one (RV-1), and that what is hidden leaves no
// trace in what else is told (RV-2).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "assay/v1/history_service.grpc.pb.h"

#include "common/sha256.h"
#include "server/auth/permissions.h"
#include "tests/integration/service_fixture.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kNotFound = absl::StatusCode::kNotFound;

// An entry as its readers name it.
struct Entry {
  std::string name;
  std::string run;
  std::string sha256;  // of its log
};

class VisibilityServiceTest : public ServiceTest {
 protected:
  // An imported entry of `organization` with one log.
  Entry Import(const std::string& organization, const std::string& log, absl::Time published) {
    const v1::Submission entry = ImportEntry(TinySpec(organization, 1), log, published);
    return {entry.name(), entry.runs(0), Sha256Hex(log)};
  }

  template <typename Request>
  static Request Named(const std::string& name) {
    Request request;
    request.set_name(name);
    return request;
  }

  // The end of a server stream, and how many messages came before it.
  template <typename Message, typename Request>
  absl::Status Drain(Client* client, const Request& request,
                     std::unique_ptr<grpc::ClientReader<Message>> (Submissions::*method)(
                         grpc::ClientContext*, const Request&),
                     int* count) {
    grpc::ClientContext context;
    PrepareCall(client->endpoint(), absl::Seconds(60), &context);
    const auto reader = (client->submission().*method)(&context, request);
    Message message;
    for (*count = 0; reader->Read(&message);)
      ++*count;
    return FromGrpc(reader->Finish());
  }

  // Every method that reads an entry, a run of it or its log, by name: its status, NOT_FOUND also
  // if a list that should have it has not.
  using Read = std::function<absl::Status(Client*, const Entry&)>;
  std::map<std::string, Read> Reads();
};

std::string MethodName(const std::string& method) {
  return absl::StrCat(
      method == "QueryResults" ? "assay.v1.HistoryService/" : "assay.v1.SubmissionService/",
      method);
}

absl::Status Found(bool is_there) {
  return is_there ? absl::OkStatus() : absl::NotFoundError("not in the list");
}

std::map<std::string, VisibilityServiceTest::Read> VisibilityServiceTest::Reads() {
  std::map<std::string, Read> reads;
  reads["GetSubmission"] = [](Client* client, const Entry& entry) {
    return client
        ->Call(client->submission(), &Submissions::GetSubmission,
               Named<v1::GetSubmissionRequest>(entry.name))
        .status();
  };
  reads["ExplainSubmission"] = [](Client* client, const Entry& entry) {
    return client
        ->Call(client->submission(), &Submissions::ExplainSubmission,
               Named<v1::ExplainSubmissionRequest>(entry.name))
        .status();
  };
  reads["GetRun"] = [](Client* client, const Entry& entry) {
    return client
        ->Call(client->submission(), &Submissions::GetRun, Named<v1::GetRunRequest>(entry.run))
        .status();
  };
  reads["ListSubmissions"] = [](Client* client, const Entry& entry) {
    const auto list = client->Call(client->submission(), &Submissions::ListSubmissions, {});
    if (!list.ok()) return list.status();
    bool is_there = false;
    for (const v1::Submission& one : list->submissions())
      is_there = is_there || one.name() == entry.name;
    return Found(is_there);
  };
  reads["ListRuns"] = [](Client* client, const Entry& entry) {
    v1::ListRunsRequest of_it;
    of_it.set_submission(entry.name);
    const auto its = client->Call(client->submission(), &Submissions::ListRuns, of_it);
    const auto all = client->Call(client->submission(), &Submissions::ListRuns, {});
    if (!all.ok()) return all.status();
    bool is_there = false;
    for (const v1::Run& run : all->runs())
      is_there = is_there || run.name() == entry.run;
    EXPECT_EQ(its.ok(), is_there) << "of one and of all";
    return its.status();
  };
  reads["WatchEvents"] = [this](Client* client, const Entry& entry) {
    v1::WatchEventsRequest request;
    int of_all = 0;
    const absl::Status all = Drain(client, request, &Submissions::WatchEvents, &of_all);
    if (!all.ok()) return all;
    request.set_submission(entry.name);
    int count = 0;
    const absl::Status status = Drain(client, request, &Submissions::WatchEvents, &count);
    EXPECT_EQ(status.ok(), count > 0);
    EXPECT_LE(count, of_all);
    return status;
  };
  reads["WatchRunEvents"] = [this](Client* client, const Entry& entry) {
    v1::WatchRunEventsRequest request;
    request.set_run(entry.run);
    int count = 0;
    return Drain(client, request, &Submissions::WatchRunEvents, &count);
  };
  reads["DownloadArtifact"] = [this](Client* client, const Entry& entry) {
    v1::DownloadArtifactRequest request;
    request.set_sha256(entry.sha256);
    int count = 0;
    const absl::Status status = Drain(client, request, &Submissions::DownloadArtifact, &count);
    EXPECT_EQ(status.ok(), count > 0);
    return status;
  };
  reads["QueryResults"] = [](Client* client, const Entry& entry) {
    const auto history = v1::HistoryService::NewStub(client->channel());
    v1::QueryResultsRequest request;
    const auto found = client->Call(*history, &v1::HistoryService::Stub::QueryResults, request);
    if (!found.ok()) return found.status();
    const std::string id = entry.name.substr(entry.name.find('/') + 1);
    return Found(absl::StrContains(found->DebugString(), absl::StrCat("\"", id, "\"")));
  };
  return reads;
}

// Methods x roles x (own, a rival's, a rival's that is published, joint, one that never was). What
// each shall see is written down here a second time.
TEST_F(VisibilityServiceTest, EveryMethodOfEveryRoleSeesWhatItMay) {
  const absl::Time past = absl::FromCivil(absl::CivilDay(2020, 11, 18), absl::UTCTimeZone());
  const absl::Time future = absl::Now() + absl::Hours(1000);
  const std::map<std::string, Entry> entries = {
      {"own", Import("Fjord", "a\n", future)},
      {"rival", Import("Rival", "b\n", future)},
      {"published", Import("Rival", "c\n", past)},
      {"joint", Import("Rival+Fjord", "d\n", future)},
      {"none", {"submissions/e-99", "runs/r-99", Sha256Hex("never")}}};
  const std::map<std::string, std::set<std::string>> seen = {
      {"public", {"published"}},
      {"submitter", {"own", "published", "joint"}},
      {"reviewer", {"own", "rival", "published", "joint"}},
      {"operator", {"own", "rival", "published", "joint"}}};

  std::map<std::string, Read> reads = Reads();
  // A method that reads and is not tried here fails the test.
  for (const auth::PermissionRow& row : auth::PermissionTable())
    if (row.submitter == auth::Access::kPublished || row.public_ == auth::Access::kPublished) {
      const std::string method(row.method);
      EXPECT_EQ(reads.count(method.substr(method.find('/') + 1)), 1U) << method;
    }

  for (const auto& [role, names] : seen) {
    Client client = WithToken(role, role == "submitter" ? "Fjord" : "");
    for (const auto& [method, read] : reads) {
      const auth::Access access = auth::AccessOf(*auth::ParseRole(role), MethodName(method));
      for (const auto& [name, entry] : entries) {
        SCOPED_TRACE(absl::StrCat(role, " ", method, " ", name));
        const absl::Status status = read(&client, entry);
        if (access == auth::Access::kDenied) {
          EXPECT_THAT(status, StatusIs(absl::StatusCode::kPermissionDenied));
        } else if (names.count(name) > 0) {
          EXPECT_THAT(status, IsOk());
        } else {
          EXPECT_THAT(status, StatusIs(kNotFound));
          // Word for word what is said of one that never was.
          const Entry& none = entries.at("none");
          const std::string text = absl::StrReplaceAll(
              status.message(),
              {{entry.name, none.name}, {entry.run, none.run}, {entry.sha256, none.sha256}});
          EXPECT_EQ(text, read(&client, none).message());
        }
      }
    }
    const auto info = client.Call(client.admin(), &Admin::GetServerInfo, {});
    ASSERT_THAT(info, IsOk());
    EXPECT_EQ(info->submission_count(), std::ssize(names)) << role;
    EXPECT_EQ(info->role(), role);
  }
}

TEST_F(VisibilityServiceTest, ThePublicReadsWhatIsPublishedAndNothingElse) {
  const Entry entry = Import("Rival", "c\n", absl::Now() - absl::Hours(1));
  Client site = WithToken("public");
  v1::NoteSubmissionRequest note = Named<v1::NoteSubmissionRequest>(entry.name);
  note.set_text("a secret");
  note.set_request_id("n");
  ASSERT_THAT(root_->Call(root_->submission(), &Submissions::NoteSubmission, note), IsOk());

  const auto seen = site.Call(site.submission(), &Submissions::GetSubmission,
                              Named<v1::GetSubmissionRequest>(entry.name));

  ASSERT_THAT(seen, IsOk());
  EXPECT_EQ(seen->submitter(), "");
  EXPECT_THAT(seen->notes(), IsEmpty());
  EXPECT_EQ(seen->system_description_json(), "{\"submitter\": \"x\"}");
  EXPECT_GT(seen->publish_time().seconds(), 0);
  for (const v1::Event& event : Watch(&site, entry.name, 0)) {
    EXPECT_EQ(event.principal(), "");
    EXPECT_EQ(event.body_json(), "{}");
    EXPECT_NE(event.type(), "SubmissionNoted");
  }
  EXPECT_THAT(site.Call(site.submission(), &Submissions::NoteSubmission, note),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(site.Call(site.admin(), &Admin::ListWorkers, {}),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(site.Call(site.admin(), &Admin::ListRounds, {}), IsOk());
  const auto info = site.Call(site.admin(), &Admin::GetServerInfo, {});
  EXPECT_EQ(info->event_seq(), 0);
  EXPECT_EQ(info->worker_count(), 0);
  EXPECT_EQ(info->submission_count(), 1);
  // Whom it is published to may not touch it.
  Client fjord = WithToken("submitter", "Fjord");
  EXPECT_THAT(fjord.Call(fjord.submission(), &Submissions::NoteSubmission, note),
              StatusIs(kNotFound));
}

TEST_F(VisibilityServiceTest, AnOperatorPublishesAnEntryThatHasEndedForEver) {
  const Entry sealed = Import("Rival", "b\n", absl::Now() + absl::Hours(1000));
  const auto open = Create(&*root_, TinySpec("Rival", 1));
  Client fjord = WithToken("submitter", "Fjord");
  Client rival = WithToken("submitter", "Rival");
  const auto publish = [](Client* client, const std::string& name, absl::Time at) {
    auto request = Named<v1::PublishSubmissionRequest>(name);
    if (at != absl::InfinitePast())
      request.mutable_publish_time()->set_seconds(absl::ToUnixSeconds(at));
    return client->Call(client->submission(), &Submissions::PublishSubmission, request);
  };
  const auto get = [&sealed](Client* client) {
    return client->Call(client->submission(), &Submissions::GetSubmission,
                        Named<v1::GetSubmissionRequest>(sealed.name));
  };

  EXPECT_THAT(publish(&rival, sealed.name, absl::InfinitePast()),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(publish(&*root_, open->name(), absl::InfinitePast()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is OPEN")));
  EXPECT_THAT(publish(&*root_, "submissions/e-99", absl::InfinitePast()), StatusIs(kNotFound));
  EXPECT_THAT(publish(&*root_, sealed.name, absl::Now() + absl::Hours(500)), IsOk())
      << "what has not come yet can be moved";
  EXPECT_THAT(get(&fjord), StatusIs(kNotFound));

  ASSERT_THAT(publish(&*root_, sealed.name, absl::InfinitePast()), IsOk());

  EXPECT_THAT(get(&fjord), IsOk());
  EXPECT_THAT(publish(&*root_, sealed.name, absl::InfinitePast()), IsOk()) << "again";
  EXPECT_THAT(publish(&*root_, sealed.name, absl::Now() + absl::Hours(1)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("cannot be changed")));
  Client reviewer = WithToken("reviewer");
  const auto audit = reviewer.Call(reviewer.admin(), &Admin::ListAudit, {});
  ASSERT_THAT(audit, IsOk()) << "reviewers read who published what";
  int published = 0;
  for (const v1::AuditEntry& row : audit->entries())
    published += row.type() == "SubmissionPublished" ? 1 : 0;
  EXPECT_EQ(published, 2);
}

TEST_F(VisibilityServiceTest, AnOrganisationWithdrawsItsOwnEntriesForEver) {
  const auto entry = Create(&*root_, TinySpec("Rival", 1));
  Client rival = WithToken("submitter", "Rival");
  Client fjord = WithToken("submitter", "Fjord");
  Client reviewer = WithToken("reviewer");
  auto request = Named<v1::WithdrawSubmissionRequest>(entry->name());
  request.set_reason("mis-cabled");
  const auto withdraw = [&request](Client* client) {
    return client->Call(client->submission(), &Submissions::WithdrawSubmission, request);
  };

  EXPECT_THAT(withdraw(&fjord), StatusIs(kNotFound));
  EXPECT_THAT(withdraw(&reviewer), StatusIs(absl::StatusCode::kPermissionDenied));
  const auto withdrawn = withdraw(&rival);

  ASSERT_THAT(withdrawn, IsOk());
  EXPECT_EQ(withdrawn->state(), v1::Submission::CANCELLED);
  EXPECT_GT(withdrawn->withdraw_time().seconds(), 0);
  EXPECT_EQ(withdrawn->withdraw_reason(), "withdrawn by the-submitter: mis-cabled");
  EXPECT_THAT(withdraw(&rival), IsOk()) << "again";
  EXPECT_THAT(root_->Call(root_->submission(), &Submissions::PublishSubmission,
                          Named<v1::PublishSubmissionRequest>(entry->name())),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  const auto audit = reviewer.Call(reviewer.admin(), &Admin::ListAudit, {});
  ASSERT_THAT(audit, IsOk());
  int withdrawals = 0;
  for (const v1::AuditEntry& row : audit->entries())
    withdrawals += row.type() == "SubmissionWithdrawn" ? 1 : 0;
  EXPECT_EQ(withdrawals, 1);
}

// What a rival does leaves no trace but gaps between numbers: the replies to all that Fjord can
// ask, before and after.
TEST_F(VisibilityServiceTest, ARivalsEntryChangesNoReply) {
  Import("Fjord", "a\n", absl::Now() + absl::Hours(1000));
  const auto mine = Create(&*root_, TinySpec("Fjord", 1));
  Client fjord = WithToken("submitter", "Fjord");
  const auto all = [&] {
    std::vector<std::string> replies;
    const auto add = [&replies](const auto& reply) {
      replies.push_back(reply.ok() ? reply->SerializeAsString() : reply.status().ToString());
    };
    add(fjord.Call(fjord.submission(), &Submissions::ListSubmissions, {}));
    add(fjord.Call(fjord.submission(), &Submissions::ListRuns, {}));
    v1::ListRunsRequest queued;
    queued.set_state("QUEUED");
    add(fjord.Call(fjord.submission(), &Submissions::ListRuns, queued));
    add(fjord.Call(fjord.submission(), &Submissions::ExplainSubmission,
                   Named<v1::ExplainSubmissionRequest>(mine->name())));
    v1::PlanSubmissionRequest plan;
    *plan.mutable_spec() = TinySpec("Fjord", 1);
    add(fjord.Call(fjord.submission(), &Submissions::PlanSubmission, plan));
    add(fjord.Call(fjord.admin(), &Admin::ListWorkers, {}));
    add(fjord.Call(fjord.admin(), &Admin::ListAllocations, {}));
    auto info = fjord.Call(fjord.admin(), &Admin::GetServerInfo, {});
    if (info.ok()) info->clear_event_seq();  // a number with gaps
    if (info.ok()) info->clear_current_time();
    add(info);
    for (const v1::Event& event : Watch(&fjord, "", 0))
      replies.push_back(event.SerializeAsString());
    for (const char* name : {"submissions/e-3", "submissions/e-4"})
      add(fjord.Call(fjord.submission(), &Submissions::GetSubmission,
                     Named<v1::GetSubmissionRequest>(name)));
    for (const char* lender : {"submissions/e-3", "submissions/e-4"}) {
      v1::SubmissionSpec spec = TinySpec("Fjord", 1);
      spec.mutable_borrowing()->set_own_entry(mine->name());
      spec.mutable_borrowing()->set_lender_entry(lender);
      *plan.mutable_spec() = spec;
      add(fjord.Call(fjord.submission(), &Submissions::PlanSubmission, plan));
    }
    return replies;
  };

  const std::vector<std::string> before = all();
  const Entry hidden = Import("Rival", "a\n", absl::Now() + absl::Hours(1000));
  ASSERT_EQ(hidden.name, "submissions/e-3");
  ASSERT_EQ(Create(&*root_, TinySpec("Rival", 1))->name(), "submissions/e-4");

  EXPECT_EQ(all(), before);
}

}  // namespace
}  // namespace assay::testing
