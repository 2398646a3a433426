// The coordinator's memory on disk: the event log, the rows that it has come to, and the lines that
// nodes have sent. One writer; readers have connections of their own (reader.h).

#ifndef SERVER_STORE_STORE_H_
#define SERVER_STORE_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/core/core.h"
#include "server/core/types.h"
#include "server/store/core_store.h"
#include "server/store/mark.h"

namespace assay::store {

// The high-water mark that belongs to the database at `database_path`: "mark" in its folder.
std::string MarkPath(const std::string& database_path);

struct OpenOptions {
  // Something is there that only an older database can have come with: no database is then a loss.
  bool is_database_expected = false;
  // Goes on although acknowledged events are missing: says so in the log of events, and gives no
  // number again that the high-water mark knows of.
  bool is_loss_accepted = false;
  int64_t now_us = 0;  // when that was
  // Makes what questions to the history compare (facts.h) anew, whatever its version.
  bool are_facts_rebuilt = false;
};

// Not thread-safe, but may move between threads.
class Store final : public CoreStore {
 public:
  // Opens the database at `path`, creates and migrates it as needed, and compares it with the
  // high-water mark beside it (mark.h).
  // FAILED_PRECONDITION if it is newer than this program. DATA_LOSS if it is damaged, or if it is
  // not what was acknowledged; then the message says what is missing and what to do.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& path,
                                                     const OpenOptions& options = {});
  ~Store() override;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  absl::StatusOr<core::State> Load() override;
  absl::StatusOr<core::Run> LoadRun(core::RunId id) override;
  absl::StatusOr<core::ClosedSubmission> LoadClosed(core::SubmissionId id) override;
  absl::Status Commit(const core::Outcome& outcome, const core::State& state) override;
  absl::Status SyncMark() override;
  int64_t wal_frames() const override;
  absl::Status Checkpoint() override;
  int64_t FreeDiskBytes() const override;

  // Rule packs (common/rules/pack.h) by the digest of their rules.
  using RulePacks = std::map<std::string, std::string>;
  absl::StatusOr<RulePacks> LoadRulePacks();
  // Those of the database at `path`, whoever writes to it.
  static absl::StatusOr<RulePacks> ReadRulePacks(const std::string& path);
  // Keeps `packs` for ever; what is kept already stays as it is. Durable when it returns OK.
  absl::Status KeepRulePacks(const RulePacks& packs);

  // For tests: as FactDifferences (facts.h) has it; none if the facts are what bodies say.
  absl::StatusOr<std::vector<std::string>> CompareFacts();
  // For tests: refuses to grow beyond `page_count` pages, as a full disk would.
  absl::Status LimitPages(int64_t page_count);
  // For tests: refuses rows of more than `bytes`, as SQLite does with a billion.
  void LimitRowBytes(int bytes);

 private:
  struct Statements;
  class Writer;
  explicit Store(std::unique_ptr<Statements> statements);

  absl::Status SaveCounters(const core::State& state);
  // Both give what is missing or different, a line each.
  absl::StatusOr<std::vector<std::string>> LoadHead(const std::optional<Mark>& mark);
  absl::StatusOr<std::vector<std::string>> CompareWith(const Mark& mark);
  absl::Status RecordLoss(const std::vector<std::string>& losses, const std::optional<Mark>& mark,
                          int64_t now_us);
  absl::Status OpenMark(const std::optional<Mark>& previous);
  void WriteMark();

  const std::unique_ptr<Statements> statements_;
  Mark head_;  // the end of the event log, as last committed
  std::unique_ptr<MarkFile> mark_;
  // As last committed: counters are written when they change.
  int64_t saved_last_submission_ = -1;
  int64_t saved_last_run_ = -1;
  int64_t saved_last_token_ = -1;
  int64_t saved_last_allocation_ = -1;
};

// Copies the write-ahead log into the database from a connection of its own, so that commits need
// not wait for it.
class Checkpointer {
 public:
  // Frames that are copied so fast that a commit can wait for it.
  static constexpr int64_t kFewFrames = 256;

  static absl::StatusOr<std::unique_ptr<Checkpointer>> Open(const std::string& path);
  ~Checkpointer();

  // Copies until no more than a few frames are left, or a reader or the number of commits keeps it
  // from that. How many are left. Only when none are, by a checkpoint between two commits, the log
  // begins anew in the room that it has; a log that grows makes each commit half as long again.
  absl::StatusOr<int64_t> Run();

 private:
  struct Connection;
  explicit Checkpointer(std::unique_ptr<Connection> connection);
  const std::unique_ptr<Connection> connection_;
};

}  // namespace assay::store

#endif  // SERVER_STORE_STORE_H_
