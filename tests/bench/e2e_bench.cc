// How fast the service is from end to end, beside what it is made of, in one run on one machine:
//
//   events/s     worker -> mutual TLS -> assayd -> group commit (synchronous=FULL) ->
//   acknowledgement submissions/s   client -> Unix socket -> decide -> commit -> reply beside the
//   same messages to a server that acknowledges without storing, and plain batched
//                inserts into SQLite by one thread with the same durability
//   waits        of batches that come at a steady rate, for their acknowledgement
//
// Usage: e2e_bench [seconds per measurement, default 3]. Prints a table in Markdown.

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <pthread.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "common/log.h"
#include "common/secret.h"
#include "tests/integration/deployment.h"
#include "tests/integration/fake_worker.h"

namespace assay::testing {
namespace {

// An MLLOG line of the usual length.
const std::string kLine(184, 'x');

struct Rate {
  double per_second = 0;
};

v1::EventBatch MakeBatch(const v1::DesiredState& desired, int64_t first_seq, int size) {
  v1::EventBatch batch;
  batch.set_run(desired.run());
  batch.set_generation(desired.generation());
  for (int i = 0; i < size; ++i) {
    v1::RunEvent* const event = batch.add_events();
    event->set_seq(first_seq + i);
    event->set_kind(v1::RunEvent::LOG_LINE);
    event->set_text(kLine);
    event->set_wall_us(1'700'000'000'000'000);
    event->set_mono_ns(event->seq());
    event->set_line(event->seq());
  }
  return batch;
}

// Streams batches for `time` with at most `in_flight` of them unacknowledged. `next` goes on.
Rate StreamEvents(Client* client, const v1::DesiredState& desired, int64_t* next, int in_flight,
                  int size, absl::Duration time) {
  grpc::ClientContext context;
  PrepareCall(client->endpoint(), time + absl::Minutes(1), &context);
  const auto stream = client->worker().StreamEvents(&context);
  const int64_t first = *next;
  int64_t durable = first - 1;
  const absl::Time start = absl::Now();
  v1::EventAck ack;
  while (absl::Now() - start < time) {
    while (*next - 1 - durable < int64_t{in_flight} * size) {
      CHECK(stream->Write(MakeBatch(desired, *next, size)));
      *next += size;
    }
    CHECK(stream->Read(&ack));
    durable = ack.durable_seq();
  }
  stream->WritesDone();
  while (stream->Read(&ack))
    durable = ack.durable_seq();
  CHECK_OK(FromGrpc(stream->Finish()));
  CHECK(durable == *next - 1);
  return {static_cast<double>(durable - first + 1) / absl::ToDoubleSeconds(absl::Now() - start)};
}

// How long batches wait for their acknowledgement when they come at a steady rate, whatever
// happened to those before: counted from when a batch was due.
struct Waits {
  double per_second = 0;
  std::vector<absl::Duration> sorted;
  double Ms(double share) const {
    const auto last = static_cast<double>(sorted.size() - 1);
    return absl::ToDoubleMilliseconds(sorted[static_cast<size_t>(share * last)]);
  }
};

Waits StreamAtRate(Client* client, const v1::DesiredState& desired, int64_t* next,
                   int64_t per_second, int size, absl::Duration time) {
  grpc::ClientContext context;
  PrepareCall(client->endpoint(), time + absl::Minutes(1), &context);
  const auto stream = client->worker().StreamEvents(&context);
  const int64_t first = *next;
  const absl::Duration interval = absl::Seconds(1) * size / static_cast<double>(per_second);
  const auto batch_count = static_cast<int64_t>(time / interval);
  const absl::Time start = absl::Now();
  Waits waits;
  std::thread reader([&] {
    v1::EventAck ack;
    int64_t told = 0;
    while (stream->Read(&ack)) {
      const int64_t durable = (ack.durable_seq() - first + 1) / size;
      for (; told < durable; ++told)
        waits.sorted.push_back(absl::Now() - (start + interval * told));
    }
  });
  for (int64_t i = 0; i < batch_count; ++i) {
    absl::SleepFor(start + interval * i - absl::Now());
    CHECK(stream->Write(MakeBatch(desired, *next, size)));
    *next += size;
  }
  stream->WritesDone();
  reader.join();
  CHECK_OK(FromGrpc(stream->Finish()));
  CHECK(std::ssize(waits.sorted) == batch_count);
  std::sort(waits.sorted.begin(), waits.sorted.end());
  waits.per_second =
      static_cast<double>(batch_count * size) / absl::ToDoubleSeconds(absl::Now() - start);
  return waits;
}

// Acknowledges at once and keeps nothing: what transport alone can do.
class Forgetful final : public v1::WorkerService::Service {
 public:
  grpc::Status StreamEvents(
      grpc::ServerContext* /*context*/,
      grpc::ServerReaderWriter<v1::EventAck, v1::EventBatch>* stream) override {
    v1::EventBatch batch;
    v1::EventAck ack;
    while (stream->Read(&batch)) {
      ack.set_durable_seq(batch.events(batch.events_size() - 1).seq());
      stream->Write(ack);
    }
    return grpc::Status::OK;
  }
};

Rate StreamToNobody(const Deployment& deployment, int in_flight, int size, absl::Duration time) {
  const CertificateAndKey pair =
      IssueCertificate(deployment.ca(), "forgetful", CertificateKind::kServer);
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = deployment.ca().certificate_pem;
  tls.pem_key_cert_pairs.push_back({pair.key_pem, pair.certificate_pem});
  Forgetful service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  Endpoint endpoint = deployment.Worker("w0");
  endpoint.target = absl::StrCat("127.0.0.1:", port);
  Client client(endpoint);
  int64_t next = 1;
  const Rate rate = StreamEvents(&client, {}, &next, in_flight, size, time);
  server->Shutdown(std::chrono::system_clock::now());
  return rate;
}

void Execute(sqlite3* db, const char* sql) {
  CHECK(sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK) << sqlite3_errmsg(db);
}

// The kernel's first-in first-out class for this thread, which assayd's committing thread has, too:
// beside busy cores an fsync costs 0.1 ms with it and a scheduler tick (4 ms) without.
void PreferThisThread() {
  const sched_param priority = {.sched_priority = 1};
  if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) != 0)
    std::printf("(no real-time priority here: neither for assayd nor for SQLite alone)\n");
}

// Plain inserts of the same rows, `size` to a transaction, on this thread.
Rate InsertOnThisThread(const std::string& path, int size, absl::Duration time) {
  sqlite3* db = nullptr;
  CHECK(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  Execute(db,
          "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
          "CREATE TABLE events (run INTEGER, node INTEGER, seq INTEGER, kind TEXT, body BLOB,"
          " wall_us INTEGER, mono_ns INTEGER, line INTEGER, receive_us INTEGER,"
          " PRIMARY KEY (run, node, seq)) STRICT, WITHOUT ROWID;");
  sqlite3_stmt* insert = nullptr;
  CHECK(sqlite3_prepare_v2(db, "INSERT INTO events VALUES (1, 0, ?1, 'LOG_LINE', ?2, 1, ?1, ?1, 2)",
                           -1, &insert, nullptr) == SQLITE_OK);
  int64_t seq = 0;
  const absl::Time start = absl::Now();
  while (absl::Now() - start < time) {
    Execute(db, "BEGIN IMMEDIATE");
    for (int i = 0; i < size; ++i) {
      sqlite3_bind_int64(insert, 1, ++seq);
      sqlite3_bind_blob(insert, 2, kLine.data(), static_cast<int>(kLine.size()), SQLITE_STATIC);
      CHECK(sqlite3_step(insert) == SQLITE_DONE);
      sqlite3_reset(insert);
    }
    Execute(db, "COMMIT");
  }
  const Rate rate = {static_cast<double>(seq) / absl::ToDoubleSeconds(absl::Now() - start)};
  sqlite3_finalize(insert);
  sqlite3_close(db);
  return rate;
}

Rate InsertIntoSqlite(const std::string& path, int size, absl::Duration time) {
  Rate rate;
  std::thread thread([&] {
    PreferThisThread();
    rate = InsertOnThisThread(path, size, time);
  });
  thread.join();
  return rate;
}

// `client_count` clients, each with one submission under way at a time.
Rate Submit(const Deployment& deployment, int client_count, absl::Duration time) {
  std::vector<std::thread> threads;
  std::vector<int64_t> counts(static_cast<size_t>(client_count));
  const absl::Time start = absl::Now();
  for (int64_t& count : counts) {
    threads.emplace_back([&deployment, &count, start, time] {
      Client client(deployment.Unix());
      v1::CreateSubmissionRequest request;
      *request.mutable_spec() = TinySpec("Org", 64);
      while (absl::Now() - start < time) {
        request.set_request_id(MakeUuid());
        CHECK_OK(
            client
                .Call(client.submission(), &v1::SubmissionService::Stub::CreateSubmission, request)
                .status());
        ++count;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  int64_t total = 0;
  for (const int64_t count : counts)
    total += count;
  return {static_cast<double>(total) / absl::ToDoubleSeconds(absl::Now() - start)};
}

void MeasureEvents(const Deployment& deployment, FakeWorker* worker, int64_t* next,
                   absl::Duration time) {
  std::printf(
      "| in flight x batch | durable events/s | gRPC alone | SQLite alone | of gRPC | of "
      "SQLite |\n|---|---|---|---|---|---|\n");
  for (const auto& [in_flight, size] :
       {std::pair(1, 100), std::pair(16, 100), std::pair(1, 1000)}) {
    const Rate whole =
        StreamEvents(&worker->client(), worker->desired(), next, in_flight, size, time);
    const Rate grpc = StreamToNobody(deployment, in_flight, size, time);
    const Rate sqlite = InsertIntoSqlite(
        deployment.dir().Path(absl::StrCat("plain", in_flight, "x", size, ".db")), size, time);
    std::printf("| %dx%d | %.0f | %.0f | %.0f | %.2f | %.2f |\n", in_flight, size, whole.per_second,
                grpc.per_second, sqlite.per_second, whole.per_second / grpc.per_second,
                whole.per_second / sqlite.per_second);
    std::fflush(stdout);
  }
}

void MeasureWaits(FakeWorker* worker, int64_t* next, absl::Duration time) {
  std::printf(
      "\n| events/s asked for, in batches of 100 | events/s | p50 ms | p99 ms | max ms "
      "|\n|---|---|---|---|---|\n");
  for (const int64_t per_second : {10'000, 50'000, 100'000}) {
    const Waits waits =
        StreamAtRate(&worker->client(), worker->desired(), next, per_second, 100, time);
    std::printf("| %ld | %.0f | %.1f | %.1f | %.1f |\n", per_second, waits.per_second,
                waits.Ms(0.5), waits.Ms(0.99), waits.Ms(1));
    std::fflush(stdout);
  }
}

void MeasureSubmissions(const Deployment& deployment, absl::Duration time) {
  const Rate sqlite = InsertIntoSqlite(deployment.dir().Path("plain1.db"), 1, time);
  std::printf(
      "\n| clients | durable submissions/s | SQLite, one row a commit | ratio "
      "|\n|---|---|---|---|\n");
  for (const int clients : {1, 16}) {
    const Rate rate = Submit(deployment, clients, time);
    std::printf("| %d | %.0f | %.0f | %.2f |\n", clients, rate.per_second, sqlite.per_second,
                rate.per_second / sqlite.per_second);
    std::fflush(stdout);
  }
}

void Run(absl::Duration time) {
  Deployment deployment;
  CHECK_OK(deployment.Start().status());
  Client root(deployment.Unix());
  AddTinyDataset(&root);
  v1::CreateSubmissionRequest request;
  request.set_request_id(MakeUuid());
  *request.mutable_spec() = TinySpec("Org", 1);
  CHECK_OK(root.Call(root.submission(), &v1::SubmissionService::Stub::CreateSubmission, request)
               .status());
  FakeWorker worker(deployment.Worker("w0"), "w0");
  CHECK_OK(worker.AwaitRun());
  int64_t next = 1;
  MeasureEvents(deployment, &worker, &next, time);
  MeasureWaits(&worker, &next, time);
  MeasureSubmissions(deployment, time);
}

}  // namespace
}  // namespace assay::testing

int main(int argc, char** argv) {
  double seconds = 3;
  if (argc > 1) CHECK(absl::SimpleAtod(argv[1], &seconds)) << "not a number: " << argv[1];
  assay::testing::Run(absl::Seconds(seconds));
}
