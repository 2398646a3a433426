#include "server/launch/slurm/job_keeper.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/log.h"

namespace assay::launch::slurm {
namespace {

using Outcome = core::LaunchReported::Outcome;

// From an sbatch of which nobody knows what it did.
constexpr auto kLookups =
    std::to_array<absl::Duration>({absl::Seconds(5), absl::Seconds(15), absl::Seconds(60)});
constexpr int kMissesMin = 3;
constexpr absl::Duration kMissingFor = absl::Seconds(60);
constexpr absl::Duration kSilencePauseMax = absl::Minutes(5);
// A reason that does not pass by itself, a word that nobody knows.
constexpr absl::Duration kPatience = absl::Minutes(10);
// For agents to leave, before their job is cancelled.
constexpr absl::Duration kLeaveGrace = absl::Seconds(60);
// Its last word comes any moment, as does the start of a job that was just submitted.
constexpr absl::Duration kAtOnce = absl::Seconds(1);
constexpr absl::Duration kEndingSoon = absl::Seconds(15);
// Before the end of the job, when what still runs on its nodes is stopped in order.
constexpr int64_t kEndMarginS = 120;

int64_t Number(const Job& job) {
  int64_t number = 0;
  static_cast<void>(absl::SimpleAtoi(job.id, &number));
  return number;
}

bool IsLive(const Job& job) {
  return PhaseOf(job.state) != JobPhase::kEnded;
}

// The job that counts: one that has started before one that waits, one that lives before one that
// has ended; else the first.
const Job* Choose(const std::vector<Job>& jobs) {
  const auto rank = [](const Job& job) {
    const JobPhase phase = PhaseOf(job.state);
    const int order = phase == JobPhase::kEnded ? 2 : phase == JobPhase::kWaiting ? 1 : 0;
    return std::pair(order, Number(job));
  };
  const auto it = std::min_element(jobs.begin(), jobs.end(),
                                   [&](const Job& a, const Job& b) { return rank(a) < rank(b); });
  return it == jobs.end() ? nullptr : &*it;
}

// `profile`: empty if the allocation has none.
std::string Words(const Job& job, const std::string& profile) {
  std::string words = absl::StrCat("Slurm job ", job.id, " (", job.name,
                                   profile.empty() ? "" : ", profile ", profile, ")");
  if (!job.reason.empty() && job.reason != "None")
    absl::StrAppend(&words, ": \"", job.reason, "\"");
  return words;
}

// True once `since` lies `patience` back; starts to count when it is first asked.
bool HasLasted(absl::Time now, absl::Duration patience, std::optional<absl::Time>* since) {
  if (!since->has_value()) *since = now;
  return now - **since >= patience;
}

}  // namespace

struct JobKeeper::Held {
  core::Allocation allocation;
  bool is_released = false;
  bool is_asked = true;  // what has become of it shall be told, though it is not new
  std::string job;       // its number; empty: none is known
  bool is_granted = false;
  std::optional<core::LaunchReported> told;

  // Of an sbatch of which nobody knows what it did.
  std::optional<absl::Time> unknown_since;
  size_t lookup_count = 0;

  int missing_count = 0;
  std::optional<absl::Time> missing_since;
  std::optional<absl::Time> hopeless_since;
  std::optional<absl::Time> odd_since;
  std::optional<absl::Time> stopped_at;    // its agents were told to leave
  std::optional<absl::Time> ending_since;  // a word of Slurm's is due
  bool is_new = false;                     // just submitted, stopped or cancelled
  std::optional<std::string> end;          // how it has ended; what was left is delivered first
  bool is_over = false;                    // ended, and said so

  // The workers by their hosts; in the order in which Slurm numbered them.
  std::vector<std::pair<std::string, std::string>> workers;
};

JobKeeper::JobKeeper(KeeperOptions options, Slurm* slurm, JobFolder* folder, Report report)
    : options_(std::move(options)), slurm_(slurm), folder_(folder), report_(std::move(report)) {}

JobKeeper::~JobKeeper() = default;

void JobKeeper::Want(const core::Allocation& allocation) {
  const auto [it, is_new] = held_.try_emplace(allocation.id);
  Held& held = it->second;
  held.is_asked = true;
  held.allocation = allocation;
  if (!is_new) return;
  held.job = allocation.job;
  held.is_granted = core::IsServing(allocation.state);
  for (size_t i = 0; i < std::min(allocation.hosts.size(), allocation.workers.size()); ++i)
    held.workers.emplace_back(allocation.hosts[i], allocation.workers[i]);
}

void JobKeeper::Release(core::AllocationId allocation) {
  const auto [it, is_new] = held_.try_emplace(allocation);
  it->second.allocation.id = allocation;
  it->second.is_released = true;
  it->second.is_asked = true;
}

absl::Time JobKeeper::Look(absl::Time now) {
  const absl::StatusOr<Jobs> jobs = slurm_->Jobs();
  if (!jobs.ok()) return Silent(jobs.status(), now);
  if (silence_pause_ > absl::ZeroDuration()) LOG(INFO) << "Slurm answers again";
  silence_pause_ = absl::ZeroDuration();
  silent_since_ = absl::InfiniteFuture();
  std::map<core::AllocationId, Jobs> ours;
  for (const Job& job : *jobs) {
    const std::optional<core::AllocationId> id = ParseComment(options_.instance, job.comment);
    if (id.has_value() && job.name == JobName(*id)) ours[*id].push_back(job);
  }
  for (auto& [id, held] : held_)
    Advance(&held, ours[id], now);
  for (const auto& [id, its] : ours)
    if (!held_.contains(id)) CareForOrphans(its);
  std::erase_if(held_, [](const auto& entry) { return entry.second.is_over; });
  return NextLook(now);
}

// Nothing changes, but for what people are told.
absl::Time JobKeeper::Silent(const absl::Status& status, absl::Time now) {
  if (silence_pause_ == absl::ZeroDuration()) {
    LOG(WARNING) << "Slurm does not answer status=" << Quoted(status);
    silent_since_ = now;
  }
  silence_pause_ = std::clamp(silence_pause_ * 2, options_.poll_soon, kSilencePauseMax);
  for (auto& [id, held] : held_) {
    if (held.is_granted || held.is_released) continue;
    core::LaunchReported report;
    if (held.told.has_value() && held.told->outcome == Outcome::kPending) report = *held.told;
    report.outcome = Outcome::kPending;
    if (report.waiting.words.empty())
      report.waiting.words = absl::StrCat("Slurm to take ", JobName(id));
    report.waiting.silence = absl::StrCat("Slurm has not answered (", status.message(), ")");
    report.waiting.silent_since_us = absl::ToUnixMicros(silent_since_);
    Tell(&held, std::move(report));
  }
  return now + silence_pause_;
}

void JobKeeper::Advance(Held* held, const Jobs& jobs, absl::Time now) {
  held->is_new = false;
  if (held->end.has_value()) return End(held, *held->end);
  Jobs own;
  for (const Job& job : jobs) {
    // What is released may be of another entry, from before the database was restored.
    if (held->is_released || job.comment == JobComment(options_.instance, held->allocation)) {
      own.push_back(job);
    } else if (IsLive(job)) {
      Cancel(job, "of an earlier allocation of that number");
    }
  }
  const Job* const job = Choose(own);
  if (job == nullptr) return Miss(held, now);
  held->missing_count = 0;
  held->missing_since.reset();
  held->unknown_since.reset();
  held->job = job->id;
  if (held->is_released) {
    for (const Job& other : own)
      AdvanceReleased(held, other, now);
    if (!IsLive(*job)) End(held, "");
    return;
  }
  CancelLater(own, *job);
  AdvanceWanted(held, *job, now);
}

// Of several jobs for one allocation, which only lost answers make, one stays.
void JobKeeper::CancelLater(const Jobs& jobs, const Job& kept) {
  for (const Job& job : jobs) {
    if (&job == &kept || job.id == kept.id || PhaseOf(job.state) != JobPhase::kWaiting) continue;
    Cancel(job, "the second of its allocation");
  }
}

// What cannot be cancelled now is found again by the next look.
void JobKeeper::Cancel(const Job& job, absl::string_view why) {
  LOG(INFO) << "cancels job=" << job.id << " name=" << job.name << ": " << why;
  if (const absl::Status status = slurm_->Cancel(job.id); !status.ok())
    LOG(WARNING) << "not cancelled job=" << job.id << " status=" << Quoted(status);
}

void JobKeeper::AdvanceWanted(Held* held, const Job& job, absl::Time now) {
  const JobPhase phase = PhaseOf(job.state);
  if (phase != JobPhase::kUnknown && phase != JobPhase::kEnding) held->odd_since.reset();
  switch (phase) {
    case JobPhase::kWaiting:
      return Wait(held, job, now);
    case JobPhase::kRunning:
      return Grant(held, job);
    case JobPhase::kEnding:
      if (!held->ending_since.has_value()) held->ending_since = now;
      return Doubt(held, job, now);
    case JobPhase::kUnknown:
      return Doubt(held, job, now);
    case JobPhase::kSuspended:
      Cancel(job, job.state);
      return End(held, absl::StrCat("Slurm: ", job.state));
    case JobPhase::kEnded:
      return End(held, absl::StrCat("Slurm: ", job.state));
  }
}

void JobKeeper::AdvanceReleased(Held* held, const Job& job, absl::Time now) {
  if (!IsLive(job)) return;
  const JobPhase phase = PhaseOf(job.state);
  if (phase == JobPhase::kEnding) {
    if (!held->ending_since.has_value()) held->ending_since = now;
  } else if (phase != JobPhase::kRunning) {
    held->is_new = true;
    Cancel(job, "not wanted any more");
  } else if (!held->stopped_at.has_value()) {
    held->stopped_at = now;
    held->is_new = true;
    if (const absl::Status status = slurm_->StopAgents(job.id); !status.ok())
      LOG(WARNING) << "not stopped job=" << job.id << " status=" << Quoted(status);
  } else if (now - *held->stopped_at >= kLeaveGrace) {
    Cancel(job, "its agents do not leave");
  }
}

void JobKeeper::Wait(Held* held, const Job& job, absl::Time now) {
  // It has run: a second start would be another run of the agents.
  if (held->is_granted) {
    Cancel(job, "it was requeued");
    return End(held, "Slurm: requeued");
  }
  if (!IsHopeless(job.reason)) {
    held->hopeless_since.reset();
  } else if (HasLasted(now, kPatience, &held->hopeless_since)) {
    Cancel(job, job.reason);
    return End(held,
               absl::StrCat("Slurm: \"", job.reason, "\" for ", absl::FormatDuration(kPatience)));
  }
  Tell(held, {.outcome = Outcome::kPending,
              .job = job.id,
              .waiting = {.words = Words(job, held->allocation.spec.profile),
                          .expected_start_us = job.start_s * 1'000'000}});
}

void JobKeeper::Grant(Held* held, const Job& job) {
  const absl::StatusOr<std::vector<std::string>> hosts = ExpandHosts(job.hosts);
  if (!hosts.ok() || hosts->empty()) {
    LOG(WARNING) << "job=" << job.id << " runs on \"" << job.hosts << "\"";
    return;
  }
  if (held->workers.empty()) {
    for (const std::string& host : *hosts)
      held->workers.emplace_back(
          host, absl::StrCat("a", held->allocation.id.number, "-", held->workers.size()));
  }
  core::LaunchReported report{.outcome = Outcome::kGranted};
  std::vector<std::string> lost;
  for (const auto& [host, worker] : held->workers) {
    if (std::find(hosts->begin(), hosts->end(), host) == hosts->end()) {
      lost.push_back(host);
      continue;
    }
    report.workers.push_back(worker);
    report.hosts.push_back(host);
  }
  if (!lost.empty()) report.reason = absl::StrCat("Slurm: NODE_FAIL ", absl::StrJoin(lost, ","));
  if (job.end_s > kEndMarginS) report.deadline_us = (job.end_s - kEndMarginS) * 1'000'000;
  if (held->told.has_value() && held->told->outcome == Outcome::kGranted) {
    return Tell(held, std::move(report));
  }
  // Those who have enrolled already do not look for it any more.
  if (held->allocation.state != core::AllocationState::kActive) {
    const absl::Status admitted = folder_->Admit(held->allocation.id, report.workers);
    if (!admitted.ok())
      return Tell(held, {.outcome = Outcome::kFailed, .reason = std::string(admitted.message())});
  }
  if (held->allocation.job != job.id)
    Tell(held, {.outcome = Outcome::kPending,
                .job = job.id,
                .waiting = {.words = Words(job, held->allocation.spec.profile)}});
  held->is_granted = true;
  held->is_asked = true;
  Tell(held, std::move(report));
}

// No job of the allocation is among those that Slurm knows.
void JobKeeper::Miss(Held* held, absl::Time now) {
  if (held->unknown_since.has_value()) {
    if (now < *held->unknown_since + kLookups.at(held->lookup_count)) return;
    if (++held->lookup_count < kLookups.size()) return;
    held->unknown_since.reset();  // it has come to nothing
  }
  if (!held->job.empty() || held->is_granted) {
    ++held->missing_count;
    const bool is_long = HasLasted(now, kMissingFor, &held->missing_since);
    if (held->missing_count < kMissesMin || !is_long) return;
    if (held->is_released) return End(held, "");
    const std::string end = slurm_->FindEnd(held->job, JobName(held->allocation.id));
    return End(held, end.empty() ? absl::StrCat("Slurm: job ", held->job, " vanished")
                                 : absl::StrCat("Slurm: ", end));
  }
  if (held->is_released) return End(held, "");
  Submit(held, now);
}

void JobKeeper::Submit(Held* held, absl::Time now) {
  absl::StatusOr<JobRequest> request = folder_->Prepare(held->allocation);
  if (!request.ok())
    return Tell(held,
                {.outcome = Outcome::kFailed, .reason = std::string(request.status().message())});
  request->name = JobName(held->allocation.id);
  request->comment = JobComment(options_.instance, held->allocation);
  request->node_count = held->allocation.spec.node_count;
  const absl::StatusOr<std::string> id = slurm_->Submit(*request);
  held->is_asked = true;
  if (id.ok()) {
    LOG(INFO) << "submitted job=" << *id << " allocation=" << held->allocation.id;
    held->job = *id;
    held->is_new = true;
    return Tell(held, {.outcome = Outcome::kPending,
                       .job = *id,
                       .waiting = {.words = Words({.id = *id, .name = request->name},
                                                  held->allocation.spec.profile)}});
  }
  held->unknown_since = now;
  held->lookup_count = 0;
  Tell(held,
       {.outcome = Outcome::kFailed, .reason = absl::StrCat("Slurm: ", id.status().message())});
}

// A state from which none that we wait for has come yet.
void JobKeeper::Doubt(Held* held, const Job& job, absl::Time now) {
  if (!HasLasted(now, kPatience, &held->odd_since)) return;
  Cancel(job, "its state is unknown");
  End(held,
      absl::StrCat("unknown: Slurm says ", job.state, " for ", absl::FormatDuration(kPatience)));
}

// The core hears of it when all that was done has been told: what has not is lost then.
void JobKeeper::End(Held* held, const std::string& reason) {
  held->end = reason;
  if (!folder_->Settle(held->allocation.id)) return;
  held->is_over = true;
  folder_->Close(held->allocation.id, held->is_released);
  report_({.allocation = held->allocation.id, .outcome = Outcome::kEnded, .reason = reason});
}

void JobKeeper::Tell(Held* held, core::LaunchReported report) {
  report.allocation = held->allocation.id;
  const auto same = [](const core::LaunchReported& a, const core::LaunchReported& b) {
    return a.outcome == b.outcome && a.workers == b.workers && a.hosts == b.hosts &&
           a.deadline_us == b.deadline_us && a.reason == b.reason && a.job == b.job &&
           a.waiting == b.waiting;
  };
  if (!held->is_asked && held->told.has_value() && same(*held->told, report)) return;
  held->is_asked = false;
  held->told = report;
  report_(std::move(report));
}

// Jobs of ours that nobody here has asked for: the core says whether they are wanted.
void JobKeeper::CareForOrphans(const Jobs& jobs) {
  const Job* const job = Choose(jobs);
  if (job == nullptr || !IsLive(*job)) return;
  LOG(INFO) << "found job=" << job->id << " name=" << job->name;
  report_({.allocation = *ParseComment(options_.instance, job->comment),
           .outcome = Outcome::kPending,
           .job = job->id,
           .waiting = {.words = Words(*job, "")}});
}

absl::Time JobKeeper::NextLook(absl::Time now) const {
  absl::Duration pause = options_.poll_late;
  for (const auto& [id, held] : held_) {
    const bool is_ending = held.ending_since.has_value() && now - *held.ending_since < kEndingSoon;
    if (is_ending || held.is_new || held.end.has_value())
      return now + std::min(kAtOnce, options_.poll_soon);
    if (!held.is_granted || held.is_released || held.missing_since.has_value())
      pause = std::min(pause, options_.poll_soon);
    if (held.unknown_since.has_value())
      pause = std::min(pause, std::max(*held.unknown_since + kLookups.at(held.lookup_count) - now,
                                       absl::ZeroDuration()));
  }
  return now + pause;
}

}  // namespace assay::launch::slurm
