// Durable submissions per second through the core thread and the store, with one client and with
// 16, against a bare SQLite insert of one row of the same size per transaction, in the same process
// and on the same disk.
//
//   submission_bench [seconds per measurement]

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
#include "server/store/codec.h"
#include "server/store/sqlite.h"
#include "server/store/store.h"
#include "tests/server/core/world.h"
#include "tests/support/temp_dir.h"

namespace assay {
namespace {

double MeasurePlainSqlite(absl::Duration duration, int rows_per_commit) {
  const RealClock clock;
  testing::TempDir dir;
  store::Db db = *store::Db::Open(dir.Path("plain.db"), store::OpenMode::kReadWriteCreate);
  CHECK_OK(db.Exec("PRAGMA wal_autocheckpoint = 4096"));
  CHECK_OK(db.Exec("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT) STRICT"));
  store::Stmt insert = *db.Prepare("INSERT INTO t VALUES (?1, ?2)");
  core::Submission submission;
  submission.spec = core::testing::SomeSpec();
  const std::string body = store::Encode(submission);
  const MonoTime start = clock.Mono();
  int64_t rows = 0;
  while (clock.Mono() - start < duration) {
    CHECK_OK(db.Transact([&]() -> absl::Status {
      for (int i = 0; i < rows_per_commit; ++i) {
        if (absl::Status status = insert.Run(++rows, body); !status.ok()) return status;
      }
      return absl::OkStatus();
    }));
  }
  return static_cast<double>(rows) / absl::ToDoubleSeconds(clock.Mono() - start);
}

// Clients that each submit again when the last submission is acknowledged.
class Load {
 public:
  Load(absl::Duration duration, int client_count)
      : client_count_(client_count), deadline_(clock_.Mono() + duration) {
    core::Core core({}, *store_->Load(), absl::ToUnixMicros(clock_.Wall()));
    thread_ = std::make_unique<runtime::CoreThread>(
        runtime::CoreThread::Parts{&clock_, store_.get(), &watchers_, &tokens_, &certificates_},
        checkpointer_.get(), std::move(core), [](const std::vector<core::Effect>&) {});
    thread_->Start();
    std::promise<void> done;
    thread_->Post({"bench", core::AddDataset{core::testing::SomeDataset()}},
                  [&done](const auto&) { done.set_value(); });
    done.get_future().wait();
  }

  double Measure() {
    const MonoTime start = clock_.Mono();
    for (int i = 0; i < client_count_; ++i)
      Submit(absl::StrCat(i, "/"), 1);
    done_.get_future().wait();
    const double seconds = absl::ToDoubleSeconds(clock_.Mono() - start);
    thread_->Stop();
    return static_cast<double>(accepted_) / seconds;
  }

 private:
  void Submit(const std::string& client, int number) {
    thread_->Post(
        {"bench", core::testing::Creation(core::testing::SomeSpec(), absl::StrCat(client, number))},
        [this, client, number](const absl::StatusOr<core::Reply>& reply) {
          CHECK_OK(reply.status());
          ++accepted_;
          if (clock_.Mono() < deadline_) {
            Submit(client, number + 1);
          } else if (++ended_ == client_count_) {
            done_.set_value();
          }
        });
  }

  RealClock clock_;
  const int client_count_;
  const MonoTime deadline_;
  testing::TempDir dir_;
  std::unique_ptr<store::Store> store_ = *store::Store::Open(dir_.Path("assay.db"));
  std::unique_ptr<store::Checkpointer> checkpointer_ =
      *store::Checkpointer::Open(dir_.Path("assay.db"));
  runtime::Watchers watchers_;
  runtime::TokenTable tokens_;
  runtime::CertificateTable certificates_;
  // Used on the core thread only, until done_.
  int64_t accepted_ = 0;
  int ended_ = 0;
  std::promise<void> done_;
  std::unique_ptr<runtime::CoreThread> thread_;
};

void Main(double seconds) {
  SetMinLogSeverity(LogSeverity::WARNING);
  const absl::Duration duration = absl::Seconds(seconds);
  for (const int client_count : {1, 16}) {
    const double plain = MeasurePlainSqlite(duration, client_count);
    const double ours = Load(duration, client_count).Measure();
    std::printf(
        "%2d clients: plain SQLite %.0f rows/s (%d a commit), durable submissions %.0f/s, "
        "ratio %.2f\n",
        client_count, plain, client_count, ours, ours / plain);
  }
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  double seconds = 3;
  if (argc > 1 && !absl::SimpleAtod(argv[1], &seconds)) return 2;
  assay::Main(seconds);
}
