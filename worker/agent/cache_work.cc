#include "worker/agent/cache_work.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "assay/v1/config.pb.h"
#include "assay/v1/resources.pb.h"

#include "common/dataset/manifest.h"
#include "common/dataset/parallel.h"
#include "common/file.h"
#include "common/log.h"
#include "common/printable.h"
#include "common/status.h"
#include "worker/agent/account.h"
#include "worker/agent/stage_area.h"
#include "worker/agent/text_proto.h"
#include "worker/cache/node_cache.h"

namespace assay::agent {
namespace {

constexpr int kReportedDatasetsMax = 1000;  // a coordinator takes 1024
constexpr size_t kNameBytesMax = 200;
constexpr size_t kSentenceBytesMax = 2000;
constexpr absl::Duration kReportInterval = absl::Seconds(1);

// Without effect where the kernel or a policy refuses it: then it competes as any process.
void GiveWay() {
  constexpr int kWhoProcess = 1;       // of linux/ioprio.h, which C libraries do not have
  constexpr int kIdleClass = 3 << 13;  //
  const sched_param none{};
  if (sched_setscheduler(0, SCHED_IDLE, &none) != 0 ||
      syscall(SYS_ioprio_set, kWhoProcess, 0, kIdleClass) != 0)
    LOG(WARNING) << "the node cache is worked on with a higher priority than idle: "
                 << strerror(errno);
}

std::string Shown(absl::string_view text, size_t bytes_max) {
  return Printable(text.substr(0, bytes_max / 4));  // a byte may take four
}

// True if the same may succeed later though nobody does anything about it here: who holds the
// dataset ends, a file system comes back, the copy of a source is finished. Not if somebody has to
// decide: other files, no room, a pin.
bool MayPass(const absl::Status& failure) {
  switch (failure.code()) {
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kUnknown:  // as EIO
      return true;
    default:
      return false;
  }
}

// The work, and what there is to say of it.
class CacheWork {
 public:
  CacheWork(const CacheWorkFiles& files, cache::NodeCache* cache, const Clock* clock)
      : files_(files), cache_(*cache), clock_(*clock) {}

  absl::Status Carry(const v1::CacheOrder& order) {
    RETURN_IF_ERROR(Look());
    switch (order.action()) {
      case v1::CacheOrder::STAGE:
        return Stage(order);
      case v1::CacheOrder::EVICT:
        return UnlessAbsent(cache_.Evict(order.digest()));
      case v1::CacheOrder::PIN: {
        const absl::Status pinned = cache_.SetPinned(order.digest(), true);
        if (!absl::IsNotFound(pinned)) return pinned;
        return absl::FailedPreconditionError(
            absl::StrCat(pinned.message(), ", so that there is nothing to pin: stage it first"));
      }
      case v1::CacheOrder::UNPIN:
        return UnlessAbsent(cache_.SetPinned(order.digest(), false));
      default:
        return absl::UnimplementedError(
            "the agent does not know what it is to do with its cache: upgrade it");
    }
  }

  absl::Status Look() {
    ASSIGN_OR_RETURN(const std::vector<cache::CachedDataset> datasets, cache_.List());
    report_.clear_datasets();
    for (const cache::CachedDataset& dataset : datasets) {
      if (report_.datasets_size() == kReportedDatasetsMax) break;
      v1::CachedDataset* const told = report_.add_datasets();
      told->set_digest(dataset.digest);
      told->set_name(Shown(dataset.name, kNameBytesMax));
      told->set_files(dataset.files);
      told->set_files_total(dataset.files_total);
      told->set_bytes(dataset.bytes);
      told->set_bytes_total(dataset.bytes_total);
      told->set_is_pinned(dataset.is_pinned);
      told->set_is_in_use(dataset.is_held);
    }
    return absl::OkStatus();
  }

  absl::Status Write() {
    return WriteFileAtomic(files_.report, report_.SerializeAsString(), kPrivateFile);
  }

  v1::CacheReport& report() { return report_; }

 private:
  static absl::Status UnlessAbsent(const absl::Status& status) {
    return absl::IsNotFound(status) ? absl::OkStatus() : status;
  }

  absl::Status Stage(const v1::CacheOrder& order) {
    ASSIGN_OR_RETURN(const dataset::Manifest manifest, dataset::LoadManifest(order.path()));
    const std::string digest = dataset::DatasetDigest(manifest);
    if (digest != order.digest())
      return absl::FailedPreconditionError(absl::StrCat(
          order.path(), " on this node has digest ", digest.substr(0, 12),
          ", and not that of dataset ", order.dataset(), ", ", order.digest().substr(0, 12),
          ": put the same files there as on other nodes, or register the dataset anew"));
    const auto files_total = static_cast<int64_t>(manifest.files.size());
    const int64_t bytes_total = dataset::TotalBytes(manifest);
    int64_t bytes_had = 0;
    for (const v1::CachedDataset& dataset : report_.datasets())
      if (dataset.digest() == digest && !dataset.is_in_use()) bytes_had = dataset.bytes();
    report_.set_files_total(files_total);
    report_.set_bytes_total(bytes_total);
    // Of all copied files; some may not have been whole, so that more is copied than is missing.
    ASSIGN_OR_RETURN(
        const cache::Filled filled,
        cache_.Stage(order.path(), &clock_, [=, this](const dataset::Progress& progress) {
          report_.set_files(files_total - progress.files_total + progress.files);
          report_.set_bytes(std::min(bytes_total, bytes_had + progress.bytes));
          WriteIfDue();
        }));
    report_.set_files(files_total);
    report_.set_bytes(bytes_total);
    if (filled.digest != digest)
      return absl::AbortedError(
          absl::StrCat(order.path(), " has become another dataset while it was copied"));
    return absl::OkStatus();
  }

  void WriteIfDue() {
    const MonoTime now = clock_.Mono();
    if (written_at_.has_value() && now < *written_at_ + kReportInterval) return;
    written_at_ = now;
    if (const absl::Status written = Write(); !written.ok()) LOG(WARNING) << written;
  }

  const CacheWorkFiles& files_;
  cache::NodeCache& cache_;
  const Clock& clock_;
  v1::CacheReport report_;
  std::optional<MonoTime> written_at_;
};

absl::Status Work(const CacheWorkFiles& files, const Clock& clock) {
  v1::WorkerConfig config;
  RETURN_IF_ERROR(LoadTextProto(files.config, &config));
  v1::CacheOrder order;
  const bool has_order = FileExists(files.order);
  if (has_order) RETURN_IF_ERROR(LoadTextProto(files.order, &order));
  ASSIGN_OR_RETURN(const std::optional<Account> user, FindRunUser(config));
  absl::StatusOr<cache::NodeCache> cache = OpenNodeCache(config, user);
  v1::CacheReport none;
  none.set_problem(Shown(cache.status().message(), kSentenceBytesMax));
  none.set_is_temporary(MayPass(cache.status()));
  none.set_look_problem(none.problem());
  if (!cache.ok()) return WriteFileAtomic(files.report, none.SerializeAsString(), kPrivateFile);
  CacheWork work(files, &*cache, &clock);
  if (has_order) {
    const absl::Status carried = work.Carry(order);
    work.report().set_problem(Shown(carried.message(), kSentenceBytesMax));
    work.report().set_is_temporary(MayPass(carried));
  }
  const absl::Status looked = work.Look();
  work.report().set_look_problem(Shown(looked.message(), kSentenceBytesMax));
  return work.Write();
}

}  // namespace

CacheWorkFiles::CacheWorkFiles(const std::string& directory)
    : config(JoinPath(directory, "config")),
      order(JoinPath(directory, "order")),
      report(JoinPath(directory, "report")) {}

int RunCacheWork(const std::string& directory, const Clock& clock) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  GiveWay();
  const absl::Status status = Work(CacheWorkFiles(directory), clock);
  if (status.ok()) return EXIT_SUCCESS;
  LOG(ERROR) << "node cache: " << status;
  return EXIT_FAILURE;
}

}  // namespace assay::agent
