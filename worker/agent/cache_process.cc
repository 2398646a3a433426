#include "worker/agent/cache_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/log.h"
#include "common/status.h"
#include "worker/agent/cache_work.h"
#include "worker/agent/text_proto.h"

namespace assay::agent {
namespace {

constexpr absl::Duration kLookInterval = absl::Minutes(1);
constexpr absl::Duration kEndPatience = absl::Seconds(2);

}  // namespace

CacheProcess::CacheProcess(v1::WorkerConfig config, std::string program)
    : config_(std::move(config)), program_(std::move(program)) {}

std::string CacheProcess::Directory() const {
  return JoinPath(config_.data_directory(), "cache-work");
}

void CacheProcess::Start(int64_t number, const std::string& spec) {
  Stop();
  v1::CacheOrder order;
  if (!order.ParseFromString(spec)) LOG(ERROR) << "the order for the node cache does not parse";
  LOG(INFO) << "node cache: order " << number
            << " begins: " << v1::CacheOrder::Action_Name(order.action()) << " " << order.dataset();
  Begin(number, &order);
}

void CacheProcess::LookIfDue(MonoTime now) {
  const bool is_due = !looked_at_.has_value() || now >= *looked_at_ + kLookInterval;
  if (config_.node_cache().directory().empty() || exit_fd_.is_open() || !is_due) return;
  looked_at_ = now;
  Begin(0, nullptr);
}

void CacheProcess::Begin(int64_t number, const v1::CacheOrder* order) {
  number_ = number;
  const absl::Status status = Spawn(order);
  if (status.ok()) return;
  LOG(ERROR) << "the work on the node cache cannot start: " << status;
  v1::CacheReport report = last_;
  report.set_problem("the agent could not start a process for it; its log says why");
  report.set_is_temporary(true);
  failed_start_ = Seen(/*is_done=*/true, std::move(report));
}

absl::Status CacheProcess::Spawn(const v1::CacheOrder* order) {
  const CacheWorkFiles files(Directory());
  RETURN_IF_ERROR(RemoveTree(Directory()));
  RETURN_IF_ERROR(MakeDirectories(Directory(), kPrivateDirectory));
  v1::WorkerConfig config = config_;
  config.clear_enrolment_token();
  RETURN_IF_ERROR(StoreTextProto(files.config, config, kPrivateFile));
  if (order != nullptr) RETURN_IF_ERROR(StoreTextProto(files.order, *order, kPrivateFile));
  ASSIGN_OR_RETURN(process_, assay::Spawn({.argv = {program_, kCacheWorkMode, Directory()}}));
  exit_fd_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, process_.pid, 0)));
  if (exit_fd_.is_open()) return absl::OkStatus();
  const absl::Status status = absl::ErrnoToStatus(errno, "pidfd_open");
  StopGroup(process_, absl::ZeroDuration()).IgnoreError();
  return status;
}

void CacheProcess::Stop() {
  failed_start_.reset();
  if (!exit_fd_.is_open()) return;
  exit_fd_.Reset();
  SignalGroup(process_, SIGKILL).IgnoreError();
  const absl::StatusOr<int> code = WaitForExit(process_, kEndPatience);
  if (!code.ok())
    LOG(ERROR) << "node cache: pid=" << process_.pid << " does not end: " << code.status();
  if (number_ != 0) LOG(INFO) << "node cache: order " << number_ << " is stopped";
}

void CacheProcess::StopLook() {
  if (number_ == 0) Stop();
}

CacheSeen CacheProcess::Seen(bool is_done, v1::CacheReport report) {
  report.set_number(number_);
  last_ = report;
  return {.number = number_, .is_done = is_done, .report = report.SerializeAsString()};
}

std::optional<CacheSeen> CacheProcess::TakeEnd() {
  if (failed_start_.has_value()) return std::exchange(failed_start_, std::nullopt);
  pollfd entry{exit_fd_.get(), POLLIN, 0};
  if (!exit_fd_.is_open() || poll(&entry, 1, 0) != 1) return std::nullopt;
  exit_fd_.Reset();
  const absl::StatusOr<int> code = WaitForExit(process_, absl::Seconds(10));
  std::optional<v1::CacheReport> report = ReadReport();
  const bool is_whole = report.has_value() && code.ok() && *code == 0;
  if (!report.has_value()) report = last_;
  if (!is_whole) {
    const std::string problem =
        absl::StrCat("the process that worked on the node cache has ended with ", code.value_or(-1),
                     "; the log of the agent may say why");
    report->set_problem(problem);
    report->set_is_temporary(true);
    report->set_look_problem(problem);
  }
  if (number_ != 0)
    LOG(INFO) << "node cache: order " << number_
              << " has ended: " << (report->problem().empty() ? "done" : report->problem());
  return Seen(/*is_done=*/true, *std::move(report));
}

std::optional<CacheSeen> CacheProcess::TakeProgress() {
  if (!exit_fd_.is_open() || number_ == 0) return std::nullopt;
  std::optional<v1::CacheReport> report = ReadReport();
  if (!report.has_value() || report->bytes() == last_.bytes()) return std::nullopt;
  return Seen(/*is_done=*/false, *std::move(report));
}

// None while the process has not written any.
std::optional<v1::CacheReport> CacheProcess::ReadReport() const {
  const absl::StatusOr<std::string> text = ReadFile(CacheWorkFiles(Directory()).report);
  v1::CacheReport report;
  if (!text.ok() || !report.ParseFromString(*text)) return std::nullopt;
  return report;
}

}  // namespace assay::agent
