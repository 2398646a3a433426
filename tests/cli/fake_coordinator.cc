#include "tests/cli/fake_coordinator.h"

#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/sha256.h"
#include "tests/cli/fake_caches.h"

namespace assay::testing {
namespace {

constexpr int64_t kNoon = 1704110400;  // 2024-01-01T12:00:00Z

v1::Submission Entry(int number, v1::Submission::State state) {
  v1::Submission entry;
  entry.set_name(absl::StrCat("submissions/e-", number));
  v1::SubmissionSpec* spec = entry.mutable_spec();
  spec->set_organization("Example University");
  spec->set_system("cluster-a");
  spec->set_benchmark("cosmoflow");
  spec->set_division("closed");
  spec->set_round("cosmoflow-mini");
  spec->set_dataset("cosmo32");
  spec->set_node_count(2);
  spec->set_status("research");
  v1::Hyperparameter* name = spec->add_hyperparameters();
  name->set_key("opt_name");
  name->set_json_value("\"sgd\"");
  entry.set_state(state);
  entry.set_submitter("alice");
  entry.mutable_create_time()->set_seconds(kNoon + 60 * number);
  entry.set_rules_digest(std::string(64, 'a'));
  return entry;
}

v1::Run Run(int number, int entry, v1::Run::State state) {
  v1::Run run;
  run.set_name(absl::StrCat("runs/r-", number));
  run.set_submission(absl::StrCat("submissions/e-", entry));
  run.set_number(number);
  run.set_seed(1000 + number);
  run.set_state(state);
  run.add_workers("workers/w0");
  run.add_workers("workers/w1");
  run.mutable_start_time()->set_seconds(kNoon + 100 * number);
  return run;
}

// A run of `seconds`, whose dataset was first touched 2.5 ms after its start.
v1::Run Ended(int number, int entry, double seconds, bool converged) {
  v1::Run run = Run(number, entry, v1::Run::SUCCEEDED);
  run.set_is_compliant(converged);
  run.set_is_converged(converged);
  const int64_t start_ms = (kNoon + 100 * number) * 1000;
  run.set_run_start_ms(start_ms);
  run.set_run_stop_ms(start_ms + static_cast<int64_t>(seconds * 1000));
  run.set_first_touch_us(start_ms * 1000 + 2500);
  run.set_quality(converged ? 0.361 : 0.512);
  run.set_epoch_count(9);
  return run;
}

}  // namespace

FakeCoordinator::FakeCoordinator() {
  v1::Submission done = Entry(1, v1::Submission::VALID);
  done.set_score_minutes(0.36);
  for (const int number : {1, 2, 3}) {
    done.add_runs(absl::StrCat("runs/r-", number));
    runs.push_back(Ended(number, 1, 20.5 + number, true));
    const std::string log = absl::StrCat("log of run ", number, "\n");
    v1::ArtifactRef* artifact = runs.back().add_artifacts();
    artifact->set_file_name(absl::StrCat("result_", number, ".txt"));
    artifact->set_sha256(Sha256Hex(log));
    artifact->set_size_bytes(static_cast<int64_t>(log.size()));
    artifacts[artifact->sha256()] = log;
  }
  v1::Submission running = Entry(2, v1::Submission::RUNNING);
  running.add_runs("runs/r-4");
  runs.push_back(Run(4, 2, v1::Run::RUNNING));
  entries = {running, done};

  for (const char* name : {"w0", "w1"}) {
    v1::Worker worker;
    worker.set_name(absl::StrCat("workers/", name));
    worker.set_state(v1::Worker::ALIVE);
    worker.mutable_capabilities()->set_host_name("node-7.example.org");
    worker.mutable_capabilities()->set_core_count(64);
    worker.mutable_capabilities()->set_memory_bytes(256'000'000'000);
    worker.mutable_capabilities()->add_backends("onednn");
    worker.mutable_last_seen_time()->set_seconds(kNoon);
    worker.set_system_description_json(R"({"framework": "Assay", "cooling": "air", "extra": "1"})");
    workers.push_back(worker);
  }
  workers[0].set_run("runs/r-4");
  v1::Allocation allocation;
  allocation.set_name("allocations/a-2");
  allocation.set_state(v1::Allocation::ACTIVE);
  allocation.set_state_reason("run r-4 waits for 2 nodes");
  allocation.set_launcher("local");
  allocation.set_node_count(2);
  allocation.set_requested_by("coordinator");
  allocation.mutable_create_time()->set_seconds(kNoon);
  allocation.mutable_grant_time()->set_seconds(kNoon + 60);
  allocation.mutable_deadline_time()->set_seconds(kNoon + 3600);
  for (v1::Worker& worker : workers) {
    worker.set_allocation(allocation.name());
    allocation.add_workers(worker.name());
  }
  allocations.push_back(allocation);
  allocation.set_name("allocations/a-1");
  allocation.set_state(v1::Allocation::ENDED);
  allocations.push_back(allocation);
  AddCaches(kNoon, &workers);
  v1::Dataset dataset;
  dataset.set_name("datasets/cosmo32");
  dataset.set_benchmark("cosmoflow");
  dataset.set_path("/data/cosmo32");
  dataset.set_digest(std::string(64, 'b'));
  dataset.set_train_sample_count(2048);
  dataset.set_eval_sample_count(256);
  (*dataset.mutable_parameters())["cube_edge"] = "32";
  dataset.set_compression("none");
  datasets.push_back(dataset);
  v1::Token token;
  token.set_name("tokens/t-7");
  token.set_kind(v1::Token::ACCESS);
  token.set_role("submitter");
  token.set_principal("alice");
  token.set_organization("Example University");
  token.mutable_create_time()->set_seconds(kNoon);
  token.mutable_expire_time()->set_seconds(kNoon + 3600);
  tokens.push_back(token);
  socket_path_ = directory_.Path("s");
}

FakeCoordinator::~FakeCoordinator() {
  Stop();
}

void FakeCoordinator::Start() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("unix:", socket_path_), grpc::InsecureServerCredentials());
  builder.RegisterService(static_cast<v1::SubmissionService::Service*>(this));
  builder.RegisterService(static_cast<v1::AdminService::Service*>(this));
  builder.RegisterService(static_cast<v1::HistoryService::Service*>(this));
  server_ = builder.BuildAndStart();
  CHECK(server_ != nullptr);
}

void FakeCoordinator::Stop() {
  if (server_ == nullptr) return;
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
    changed_.NotifyAll();
  }
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_ = nullptr;
}

v1::Submission* FakeCoordinator::FindEntry(const std::string& name) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const v1::Submission& e) { return e.name() == name; });
  return found == entries.end() ? nullptr : &*found;
}

grpc::Status FakeCoordinator::CreateSubmission(grpc::ServerContext* /*context*/,
                                               const v1::CreateSubmissionRequest* request,
                                               v1::Submission* response) {
  MutexLock lock(&mutex_);
  request_ids.push_back(request->request_id());
  *response = Entry(3, v1::Submission::OPEN);
  *response->mutable_spec() = request->spec();
  response->add_runs("runs/r-5");
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::PlanSubmission(grpc::ServerContext* /*context*/,
                                             const v1::PlanSubmissionRequest* request,
                                             v1::PlanSubmissionResponse* response) {
  MutexLock lock(&mutex_);
  for (const v1::Finding& finding : plan_findings)
    *response->add_findings() = finding;
  *response->mutable_spec() = request->spec();
  response->mutable_spec()->set_run_count(3);
  response->set_worker_count_matching(2);
  response->set_worker_count_free(1);
  response->set_run_count_ahead(1);
  response->set_rules_digest(std::string(64, 'a'));
  response->set_round_label("not an MLPerf result");
  response->set_quality_target(0.4);
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::GetSubmission(grpc::ServerContext* /*context*/,
                                            const v1::GetSubmissionRequest* request,
                                            v1::Submission* response) {
  MutexLock lock(&mutex_);
  const v1::Submission* entry = FindEntry(request->name());
  if (entry == nullptr)
    return {grpc::StatusCode::NOT_FOUND, absl::StrCat("there is no ", request->name())};
  *response = *entry;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ListSubmissions(grpc::ServerContext* /*context*/,
                                              const v1::ListSubmissionsRequest* request,
                                              v1::ListSubmissionsResponse* response) {
  MutexLock lock(&mutex_);
  // One entry per page: callers must follow the tokens.
  size_t next = request->page_token().empty() ? 0 : std::stoul(request->page_token());
  while (next < entries.size() &&
         !absl::EndsWith(v1::Submission::State_Name(entries[next].state()), request->state()))
    ++next;
  if (next >= entries.size()) return grpc::Status::OK;
  *response->add_submissions() = entries[next];
  if (next + 1 < entries.size()) response->set_next_page_token(absl::StrCat(next + 1));
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::NoteSubmission(grpc::ServerContext* /*context*/,
                                             const v1::NoteSubmissionRequest* request,
                                             v1::Submission* response) {
  MutexLock lock(&mutex_);
  v1::Submission* entry = FindEntry(request->name());
  if (entry == nullptr) return {grpc::StatusCode::NOT_FOUND, "there is no such entry"};
  v1::Note* const note = entry->add_notes();
  note->set_author("rita");
  note->set_text(request->text());
  *response = *entry;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::CancelSubmission(grpc::ServerContext* /*context*/,
                                               const v1::CancelSubmissionRequest* request,
                                               v1::Submission* response) {
  MutexLock lock(&mutex_);
  v1::Submission* entry = FindEntry(request->name());
  if (entry == nullptr) return {grpc::StatusCode::NOT_FOUND, "there is no such entry"};
  if (entry->state() == v1::Submission::VALID)
    return {grpc::StatusCode::FAILED_PRECONDITION, "it has ended"};
  entry->set_state(v1::Submission::CANCELLED);
  *response = *entry;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ExplainSubmission(grpc::ServerContext* /*context*/,
                                                const v1::ExplainSubmissionRequest* /*request*/,
                                                v1::ExplainSubmissionResponse* response) {
  response->set_reason("RESOURCES");
  response->set_explanation("2 nodes are needed and 1 is free");
  response->set_remedy("wait for r-4, or ask for fewer nodes");
  response->set_queue_position(2);
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::GetRun(grpc::ServerContext* /*context*/,
                                     const v1::GetRunRequest* request, v1::Run* response) {
  MutexLock lock(&mutex_);
  for (const v1::Run& run : runs) {
    if (run.name() != request->name()) continue;
    *response = run;
    return grpc::Status::OK;
  }
  return {grpc::StatusCode::NOT_FOUND, absl::StrCat("there is no ", request->name())};
}

grpc::Status FakeCoordinator::ListRuns(grpc::ServerContext* /*context*/,
                                       const v1::ListRunsRequest* request,
                                       v1::ListRunsResponse* response) {
  MutexLock lock(&mutex_);
  for (const v1::Run& run : runs)
    if (absl::EndsWith(run.submission(), request->submission()) &&
        absl::EndsWith(v1::Run::State_Name(run.state()), request->state()))
      *response->add_runs() = run;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::WatchEvents(grpc::ServerContext* context,
                                          const v1::WatchEventsRequest* request,
                                          grpc::ServerWriter<v1::Event>* writer) {
  v1::Event event;
  event.set_seq(request->after_seq() + 1);
  {
    MutexLock lock(&mutex_);
    v1::Submission* entry = FindEntry(request->submission());
    if (ends_when_watched && entry != nullptr) entry->set_state(v1::Submission::INVALID);
  }
  writer->Write(event);
  MutexLock lock(&mutex_);
  while (!ends_when_watched && !is_stopping_ && !context->IsCancelled())
    changed_.WaitFor(&mutex_, std::chrono::milliseconds(20));
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::WatchRunEvents(grpc::ServerContext* /*context*/,
                                             const v1::WatchRunEventsRequest* request,
                                             grpc::ServerWriter<v1::RunEvent>* writer) {
  std::vector<v1::RunEvent> events;
  int stop_after = -1;
  {
    MutexLock lock(&mutex_);
    resumed_after.push_back(request->after_seq());
    events = run_events;
    stop_after = std::exchange(break_after, -1);
  }
  int written = 0;
  for (const v1::RunEvent& event : events) {
    if (event.seq() <= request->after_seq()) continue;
    if (stop_after == written++) return {grpc::StatusCode::UNAVAILABLE, "restarting"};
    writer->Write(event);
  }
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::DownloadArtifact(grpc::ServerContext* /*context*/,
                                               const v1::DownloadArtifactRequest* request,
                                               grpc::ServerWriter<v1::ArtifactChunk>* writer) {
  MutexLock lock(&mutex_);
  const auto found = artifacts.find(request->sha256());
  if (found == artifacts.end()) return {grpc::StatusCode::NOT_FOUND, "no such artifact"};
  for (const char c : found->second) {
    v1::ArtifactChunk chunk;
    chunk.set_data(std::string(1, c));
    writer->Write(chunk);
  }
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ImportSubmission(
    grpc::ServerContext* /*context*/, grpc::ServerReader<v1::ImportSubmissionRequest>* reader,
    v1::Submission* response) {
  ReceivedImport received;
  v1::ImportSubmissionRequest message;
  while (reader->Read(&message)) {
    if (message.has_header()) received.header = message.header();
    if (message.has_run()) {
      received.runs.push_back(message.run());
      received.logs.emplace_back();
    }
    if (!received.logs.empty()) received.logs.back() += message.log();
  }
  MutexLock lock(&mutex_);
  imports.push_back(received);
  *response = Entry(10 + static_cast<int>(imports.size()), v1::Submission::VALID);
  *response->mutable_spec() = received.header.spec();
  response->set_is_imported(true);
  response->set_source_path(received.header.source_path());
  entries.insert(entries.begin(), *response);
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::CreateToken(grpc::ServerContext* /*context*/,
                                          const v1::CreateTokenRequest* request,
                                          v1::CreateTokenResponse* response) {
  *response->mutable_token() = request->token();
  response->mutable_token()->set_name("tokens/t-8");
  response->set_secret("assay_secret");
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ListTokens(grpc::ServerContext* /*context*/,
                                         const v1::ListTokensRequest* /*request*/,
                                         v1::ListTokensResponse* response) {
  for (const v1::Token& token : tokens)
    *response->add_tokens() = token;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ListWorkers(grpc::ServerContext* /*context*/,
                                          const v1::ListWorkersRequest* /*request*/,
                                          v1::ListWorkersResponse* response) {
  for (const v1::Worker& worker : workers)
    *response->add_workers() = worker;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::GetWorker(grpc::ServerContext* /*context*/,
                                        const v1::GetWorkerRequest* request, v1::Worker* response) {
  for (const v1::Worker& worker : workers) {
    if (worker.name() != request->name()) continue;
    *response = worker;
    return grpc::Status::OK;
  }
  return {grpc::StatusCode::NOT_FOUND, absl::StrCat("there is no ", request->name())};
}

grpc::Status FakeCoordinator::DrainWorker(grpc::ServerContext* /*context*/,
                                          const v1::DrainWorkerRequest* /*request*/,
                                          v1::Worker* /*response*/) {
  return {grpc::StatusCode::PERMISSION_DENIED, "only an operator may drain a node"};
}

// A node that is asked for is done at once.
grpc::Status FakeCoordinator::OrderCaches(grpc::ServerContext* /*context*/,
                                          const v1::OrderCachesRequest* request,
                                          v1::OrderCachesResponse* response) {
  for (const std::string& worker : request->workers())
    response->add_workers(worker);
  if (request->workers().empty())
    for (const v1::Worker& worker : workers)
      if (worker.capabilities().cache_bytes() > 0) response->add_workers(worker.name());
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ListAllocations(grpc::ServerContext* /*context*/,
                                              const v1::ListAllocationsRequest* /*request*/,
                                              v1::ListAllocationsResponse* response) {
  for (const v1::Allocation& allocation : allocations)
    *response->add_allocations() = allocation;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::GetAllocation(grpc::ServerContext* /*context*/,
                                            const v1::GetAllocationRequest* request,
                                            v1::Allocation* response) {
  for (const v1::Allocation& allocation : allocations) {
    if (allocation.name() != request->name()) continue;
    *response = allocation;
    return grpc::Status::OK;
  }
  return {grpc::StatusCode::NOT_FOUND, absl::StrCat("there is no ", request->name())};
}

grpc::Status FakeCoordinator::RequestAllocation(grpc::ServerContext* /*context*/,
                                                const v1::RequestAllocationRequest* request,
                                                v1::Allocation* response) {
  *response = request->allocation();
  response->set_name("allocations/a-3");
  response->set_state(v1::Allocation::REQUESTED);
  response->set_launcher("local");
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ReleaseAllocation(grpc::ServerContext* /*context*/,
                                                const v1::ReleaseAllocationRequest* request,
                                                v1::Allocation* response) {
  response->set_name(request->name());
  response->set_state(v1::Allocation::RELEASING);
  response->set_state_reason(request->reason());
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::RevokeWorker(grpc::ServerContext* /*context*/,
                                           const v1::RevokeWorkerRequest* request,
                                           v1::Worker* response) {
  response->set_name(request->name());
  response->set_state(v1::Worker::GONE);
  response->set_certificate_generation(1);
  response->mutable_certificates_revoke_time()->set_seconds(1'700'000'000);
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ListDatasets(grpc::ServerContext* /*context*/,
                                           const v1::ListDatasetsRequest* /*request*/,
                                           v1::ListDatasetsResponse* response) {
  for (const v1::Dataset& dataset : datasets)
    *response->add_datasets() = dataset;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ListRounds(grpc::ServerContext* /*context*/,
                                         const v1::ListRoundsRequest* /*request*/,
                                         v1::ListRoundsResponse* response) {
  v1::Round* round = response->add_rounds();
  round->set_name("cosmoflow-mini");
  round->set_digest(std::string(64, 'a'));
  round->add_benchmarks("cosmoflow");
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::GetServerInfo(grpc::ServerContext* /*context*/,
                                            const v1::GetServerInfoRequest* /*request*/,
                                            v1::ServerInfo* response) {
  response->set_version("9.9.9");
  response->set_principal("root");
  response->set_role("operator");
  response->MergeFrom(info);
  return grpc::Status::OK;
}

}  // namespace assay::testing
