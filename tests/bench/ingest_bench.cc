// Durable events per second through the core thread and the store, against what SQLite gives to a
// bare loop of batch inserts with the same durability, in the same process and on the same disk.
//
//   ingest_bench [seconds per measurement]

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/clock.h"
#include "common/log.h"
#include "server/runtime/core_thread.h"
#include "server/store/sqlite.h"
#include "server/store/store.h"
#include "tests/server/core/world.h"
#include "tests/support/temp_dir.h"

namespace assay {
namespace {

constexpr int kStreams = 16;
constexpr int kBatch = 256;

// A line as trainers write it; about 200 bytes.
const char kLine[] =
    ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1700000000000, \"event_type\": \"POINT_IN_TIME\", "
    "\"key\": \"eval_error\", \"value\": 0.35, \"metadata\": {\"file\": \"train.py\", \"lineno\": "
    "301, \"epoch_num\": 17}}";

// Inserts the same columns, kStreams * kBatch rows a transaction: what group commit comes to.
double MeasurePlainSqlite(absl::Duration duration) {
  const RealClock clock;
  testing::TempDir dir;
  store::Db db = *store::Db::Open(dir.Path("plain.db"), store::OpenMode::kReadWriteCreate);
  CHECK_OK(db.Exec("PRAGMA wal_autocheckpoint = 4096"));
  CHECK_OK(
      db.Exec("CREATE TABLE t (id INTEGER PRIMARY KEY, node INTEGER, seq INTEGER, "
              "kind INTEGER, line INTEGER, text BLOB, wall INTEGER, mono INTEGER, "
              "receive INTEGER) STRICT"));
  store::Stmt insert = *db.Prepare("INSERT INTO t VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
  const MonoTime start = clock.Mono();
  int64_t rows = 0;
  while (clock.Mono() - start < duration) {
    CHECK_OK(db.Transact([&]() -> absl::Status {
      for (int i = 0; i < kStreams * kBatch; ++i) {
        ++rows;
        if (absl::Status status = insert.Run(rows, 0, rows, 0, rows, store::Blob{kLine},
                                             int64_t{1700000000000000}, rows, rows);
            !status.ok())
          return status;
      }
      return absl::OkStatus();
    }));
  }
  return static_cast<double>(rows) / absl::ToDoubleSeconds(clock.Mono() - start);
}

// kStreams workers, each sending its next batch when the last is durable.
class Ingest {
 public:
  explicit Ingest(absl::Duration duration) : deadline_(clock_.Mono() + duration) {
    core::Core core({}, *store_->Load(), absl::ToUnixMicros(clock_.Wall()));
    thread_ = std::make_unique<runtime::CoreThread>(
        runtime::CoreThread::Parts{&clock_, store_.get(), &watchers_, &tokens_, &certificates_},
        checkpointer_.get(), std::move(core), [](const std::vector<core::Effect>&) {});
    thread_->Start();
    Do(core::AddDataset{core::testing::SomeDataset()});
    for (int i = 0; i < kStreams; ++i) {
      core::Synchronize call{.worker = absl::StrCat("w", i)};
      call.description.incarnation = "i";
      Do(call);
      Do(core::testing::Creation(core::testing::SomeSpec(), absl::StrCat(i)));
    }
  }

  double Measure() {
    const MonoTime start = clock_.Mono();
    for (int i = 0; i < kStreams; ++i)
      SendNext(i, 1);
    done_.get_future().wait();
    const double seconds = absl::ToDoubleSeconds(clock_.Mono() - start);
    thread_->Stop();
    return static_cast<double>(acknowledged_) / seconds;
  }

  // In milliseconds; `share` of all acknowledgements took at most this long.
  double Latency(double share) {
    std::sort(latencies_.begin(), latencies_.end());
    const auto index = static_cast<size_t>(share * static_cast<double>(latencies_.size() - 1));
    return absl::ToDoubleMilliseconds(latencies_[index]);
  }

 private:
  void Do(core::CommandBody body) {
    std::promise<void> done;
    thread_->Post({"bench", std::move(body)}, [&done](const absl::StatusOr<core::Reply>& reply) {
      CHECK_OK(reply.status());
      done.set_value();
    });
    done.get_future().wait();
  }

  void SendNext(int stream, int64_t first_seq) {
    core::AppendRunEvents append{core::RunId{stream + 1}, 1, 0, {}, ""};
    append.events.resize(kBatch);
    for (int i = 0; i < kBatch; ++i) {
      core::RunEvent& event = append.events[static_cast<size_t>(i)];
      event.seq = event.line = first_seq + i;
      event.text = kLine;
      event.wall_us = 1700000000000000;
      event.mono_ns = event.seq;
    }
    const MonoTime sent = clock_.Mono();
    thread_->Post({"bench", std::move(append)},
                  [this, stream, first_seq, sent](const absl::StatusOr<core::Reply>& reply) {
                    CHECK_OK(reply.status());
                    acknowledged_ += kBatch;
                    latencies_.push_back(clock_.Mono() - sent);
                    if (clock_.Mono() < deadline_) {
                      SendNext(stream, first_seq + kBatch);
                    } else if (++ended_ == kStreams) {
                      done_.set_value();
                    }
                  });
  }

  RealClock clock_;
  const MonoTime deadline_;
  testing::TempDir dir_;
  std::unique_ptr<store::Store> store_ = *store::Store::Open(dir_.Path("assay.db"));
  std::unique_ptr<store::Checkpointer> checkpointer_ =
      *store::Checkpointer::Open(dir_.Path("assay.db"));
  runtime::Watchers watchers_;
  runtime::TokenTable tokens_;
  runtime::CertificateTable certificates_;
  // Used on the core thread only, until done_.
  int64_t acknowledged_ = 0;
  int ended_ = 0;
  std::vector<absl::Duration> latencies_;
  std::promise<void> done_;
  std::unique_ptr<runtime::CoreThread> thread_;
};

void Main(double seconds) {
  SetMinLogSeverity(LogSeverity::WARNING);
  const absl::Duration duration = absl::Seconds(seconds);
  for (int round = 1; round <= 3; ++round) {
    const double plain = MeasurePlainSqlite(duration);
    Ingest ingest(duration);
    const double ours = ingest.Measure();
    std::printf(
        "round %d: plain SQLite %.0f rows/s, durable ingest %.0f events/s, ratio %.2f; "
        "acknowledgement p50 %.1f ms, p99 %.1f ms\n",
        round, plain, ours, ours / plain, ingest.Latency(0.5), ingest.Latency(0.99));
  }
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  double seconds = 3;
  if (argc > 1 && !absl::SimpleAtod(argv[1], &seconds)) return 2;
  assay::Main(seconds);
}
