#include "server/store/codec.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/core/description.h"
#include "server/store/former_members.h"
#include "server/store/json_archive.h"

// The lists of members of events, which the API shows as the store keeps them; those of records are
// in core/description.h.
namespace assay::core {

template <class A, Is<SubmissionCreated> T>
constexpr void Fields(A& a, T& v) {
  a("submission", v.submission);
  a("request_id", v.request_id);
  a("spec", v.spec);
  a("rules", v.rules);
  a("findings", v.findings);
  a("seeds", v.seeds);
  a("first_run", v.first_run);
  a.Added("borrowing", v.borrowing);
  a.Added("standing", v.standing);
}

template <class A, Is<SubmissionImported> T>
constexpr void Fields(A& a, T& v) {
  a("submission", v.submission);
  a("runs", v.runs);
}

template <class A, Is<SubmissionCheckStarted> T>
constexpr void Fields(A& a, T& v) {
  a("submission", v.submission);
}

template <class A, Is<SubmissionClosed> T>
constexpr void Fields(A& a, T& v) {
  a("submission", v.submission);
  a("state", v.state);
  a("reason", v.reason);
  a("score_minutes", v.score_minutes);
  a("findings", v.findings);
  a.Added("convergence", v.convergence);
  a.Added("throughput", v.throughput);
}

template <class A, Is<SubmissionNoted> T>
constexpr void Fields(A& a, T& v) {
  a("submission", v.submission);
  a("request_id", v.request_id);
  a("text", v.text);
  a("standing", v.standing);
}

template <class A, Is<SubmissionPublished> T>
constexpr void Fields(A& a, T& v) {
  a("submission", v.submission);
  a("published_at_us", v.published_at_us);
}

template <class A, Is<InstancesPruned> T>
constexpr void Fields(A& a, T& v) {
  a("submission", v.submission);
  a("runs", v.runs);
  a("throughput", v.throughput);
  a("convergence", v.convergence);
  a("reason", v.reason);
}

template <class A, Is<RunQueued> T>
constexpr void Fields(A& a, T& v) {
  a("run", v.run);
  a("submission", v.submission);
  a("replaces", v.replaces);
}

template <class A, Is<RunAssigned> T>
constexpr void Fields(A& a, T& v) {
  a("run", v.run);
  a("generation", v.generation);
  a("workers", v.workers);
  a.Added("allocation", v.allocation);
  a.Added("cached_workers", v.cached_workers);
}

template <class A, Is<NodeStarted> T>
constexpr void Fields(A& a, T& v) {
  a("run", v.run);
  a("node_rank", v.node_rank);
  a("clock_offset_us", v.clock_offset_us);
  a("clock_offset_uncertainty_us", v.clock_offset_uncertainty_us);
}

template <class A, Is<RunStarted> T>
constexpr void Fields(A& a, T& v) {
  a("run", v.run);
}

template <class A, Is<NodeFinished> T>
constexpr void Fields(A& a, T& v) {
  a("run", v.run);
  a("node_rank", v.node_rank);
  a("exit_code", v.exit_code);
  a("reason", v.reason);
}

template <class A, Is<NodeGivenUp> T>
constexpr void Fields(A& a, T& v) {
  a("run", v.run);
  a("node_rank", v.node_rank);
}

template <class A, Is<RunUploaded> T>
constexpr void Fields(A& a, T& v) {
  a("run", v.run);
}

template <class A, Is<RunJudged> T>
constexpr void Fields(A& a, T& v) {
  a("run", v.run);
  a("facts", v.facts);
}

template <class A, Is<RunFailed> T>
constexpr void Fields(A& a, T& v) {
  a("run", v.run);
  a("reason", v.reason);
  a("exit_code", v.exit_code);
  a("is_replaceable", v.is_replaceable);
}

template <class A, Is<RunFailureExplained> T>
constexpr void Fields(A& a, T& v) {
  a("run", v.run);
  a("reason", v.reason);
  a("exit_code", v.exit_code);
}

template <class A, Is<RunCancelled> T>
constexpr void Fields(A& a, T& v) {
  a("run", v.run);
  a("reason", v.reason);
}

template <class A, Is<RunEventsAppended> T>
constexpr void Fields(A& a, T& v) {
  a("run", v.run);
  a("node_rank", v.node_rank);
  a("first_seq", v.first_seq);
  a("last_seq", v.last_seq);
  a("first_touch_us", v.first_touch_us);
  a.Added("is_late", v.is_late);
  a.Added("observed_touch_us", v.observed_touch_us);
}

template <class A, Is<ArtifactRecorded> T>
constexpr void Fields(A& a, T& v) {
  a("run", v.run);
  a("artifact", v.artifact);
  a.Added("is_late", v.is_late);
}

template <class A, Is<WorkerRegistered> T>
constexpr void Fields(A& a, T& v) {
  a("worker", v.worker);
  a("description", v.description);
}

template <class A, Is<WorkerDescribed> T>
constexpr void Fields(A& a, T& v) {
  a("worker", v.worker);
  a("description", v.description);
}

template <class A, Is<WorkerStateChanged> T>
constexpr void Fields(A& a, T& v) {
  a("worker", v.worker);
  a("state", v.state);
  a("reason", v.reason);
  a("is_drain_requested", v.is_drain_requested);
}

template <class A, Is<WorkerRevoked> T>
constexpr void Fields(A& a, T& v) {
  a("worker", v.worker);
  a("certificate_generation", v.certificate_generation);
  a("reason", v.reason);
}

template <class A, Is<WorkerReleased> T>
constexpr void Fields(A& a, T& v) {
  a("worker", v.worker);
  a("run", v.run);
}

template <class A, Is<TokenCreated> T>
constexpr void Fields(A& a, T& v) {
  a("request_id", v.request_id);
  a("token", v.token);
  a.Added("standing", v.standing);
}

template <class A, Is<TokenRevoked> T>
constexpr void Fields(A& a, T& v) {
  a("token", v.token);
  a("worker", v.worker);
}

template <class A, Is<DatasetAdded> T>
constexpr void Fields(A& a, T& v) {
  a("dataset", v.dataset);
}

template <class A, Is<ViewSaved> T>
constexpr void Fields(A& a, T& v) {
  a("view", v.view);
}

template <class A, Is<ViewRemoved> T>
constexpr void Fields(A& a, T& v) {
  a("view", v.view);
  a("standing", v.standing);
}

template <class A, Is<PreflightStarted> T>
constexpr void Fields(A& a, T& v) {
  a("worker", v.worker);
  a("submission", v.submission);
  a("checks", v.checks);
  a("percent_of_median", v.percent_of_median);
  a("time_limit_us", v.time_limit_us);
  a("deadline_us", v.deadline_us);
  a.Added("place", v.place);
}

template <class A, Is<PreflightFinished> T>
constexpr void Fields(A& a, T& v) {
  a("worker", v.worker);
  a("submission", v.submission);
  a("state", v.state);
  a("reason", v.reason);
  a("node_type", v.node_type);
  a("checks", v.checks);
}

template <class A, Is<DatasetRemoved> T>
constexpr void Fields(A& a, T& v) {
  a("dataset", v.dataset);
}

template <class A, Is<CacheOrdered> T>
constexpr void Fields(A& a, T& v) {
  a("worker", v.worker);
  a("action", v.action);
  a("dataset", v.dataset);
  a("path", v.path);
  a("digest", v.digest);
}

template <class A, Is<CacheOrderEnded> T>
constexpr void Fields(A& a, T& v) {
  a("worker", v.worker);
  a("number", v.number);
  a("problem", v.problem);
}

template <class A, Is<CacheOrderPostponed> T>
constexpr void Fields(A& a, T& v) {
  a("worker", v.worker);
  a("number", v.number);
  a("problem", v.problem);
  a("retry_at_us", v.retry_at_us);
}

template <class A, Is<CacheOrderRetried> T>
constexpr void Fields(A& a, T& v) {
  a("worker", v.worker);
  a("number", v.number);
}

template <class A, Is<AllocationRequested> T>
constexpr void Fields(A& a, T& v) {
  a("allocation", v.allocation);
  a("spec", v.spec);
  a("reason", v.reason);
  a("request_id", v.request_id);
  a("standing", v.standing);
}

template <class A, Is<AllocationGranted> T>
constexpr void Fields(A& a, T& v) {
  a("allocation", v.allocation);
  a("workers", v.workers);
  a("deadline_us", v.deadline_us);
  a.Added("hosts", v.hosts);
}

template <class A, Is<AllocationSubmitted> T>
constexpr void Fields(A& a, T& v) {
  a("allocation", v.allocation);
  a("job", v.job);
}

template <class A, Is<NodeEnrolled> T>
constexpr void Fields(A& a, T& v) {
  a("allocation", v.allocation);
  a("worker", v.worker);
  a("host", v.host);
}

template <class A, Is<AllocationLaunchFailed> T>
constexpr void Fields(A& a, T& v) {
  a("allocation", v.allocation);
  a("error", v.error);
  a("retry_at_us", v.retry_at_us);
}

template <class A, Is<AllocationActivated> T>
constexpr void Fields(A& a, T& v) {
  a("allocation", v.allocation);
}

template <class A, Is<AllocationReleasing> T>
constexpr void Fields(A& a, T& v) {
  a("allocation", v.allocation);
  a("reason", v.reason);
  a.Added("absent_hosts", v.absent_hosts);
}

template <class A, Is<AllocationEnded> T>
constexpr void Fields(A& a, T& v) {
  a("allocation", v.allocation);
  a("reason", v.reason);
  a.Added("submission", v.submission);
}

template <class A, Is<WorkerJoined> T>
constexpr void Fields(A& a, T& v) {
  a("worker", v.worker);
  a("allocation", v.allocation);
}

template <class A, Is<WorkerForgotten> T>
constexpr void Fields(A& a, T& v) {
  a("worker", v.worker);
}

template <class A, Is<TokensForgotten> T>
constexpr void Fields(A& a, T& v) {
  a("tokens", v.tokens);
}

template <class A, Is<RequestsForgotten> T>
constexpr void Fields(A& a, T& v) {
  a("requests", v.requests);
}

template <class A, Is<DataLossAccepted> T>
constexpr void Fields(A& a, T& v) {
  a("first_lost_seq", v.first_lost_seq);
  a("last_lost_seq", v.last_lost_seq);
  a("last_submission", v.last_submission);
  a("last_run", v.last_run);
  a("last_token", v.last_token);
  a("reason", v.reason);
}
}  // namespace assay::core

namespace assay::store {
namespace {

template <typename T>
std::string EncodeRecord(const T& value) {
  JsonWriter writer;
  writer.Write(value);
  return writer.Take();
}

template <typename T>
absl::StatusOr<T> DecodeRecord(absl::string_view body) {
  rapidjson::Document document;
  // Iterative: a deeply nested body must not use up the stack.
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseFullPrecisionFlag>(body.data(),
                                                                                      body.size());
  if (document.HasParseError())
    return absl::DataLossError(
        absl::StrCat("not JSON at byte ", document.GetErrorOffset(), ": ", body.substr(0, 80)));
  T value;
  JsonReader reader(&document);
  Fields(reader, value);
  RETURN_IF_ERROR(reader.status());
  return value;
}

// Tries the alternatives of Event one after the other.
template <size_t kIndex = 0>
absl::StatusOr<core::Event> DecodeAs(absl::string_view type, int version, absl::string_view body) {
  if constexpr (kIndex == std::variant_size_v<core::Event>) {
    return absl::DataLossError(absl::StrCat("unknown type of event ", type));
  } else {
    using E = std::variant_alternative_t<kIndex, core::Event>;
    if (E::kType != type) return DecodeAs<kIndex + 1>(type, version, body);
    if (version > E::kVersion)
      return absl::FailedPreconditionError(absl::StrCat("event ", type, " has version ", version,
                                                        ", this program knows ", E::kVersion,
                                                        "; use a newer one"));
    absl::StatusOr<E> event = DecodeRecord<E>(body);
    if (!event.ok()) return Annotate(event.status(), type);
    return core::Event(*std::move(event));
  }
}

}  // namespace

std::string EncodeEvent(const core::Event& event) {
  return std::visit([](const auto& e) { return EncodeRecord(e); }, event);
}

absl::StatusOr<core::Event> DecodeEvent(absl::string_view type, int version,
                                        absl::string_view body) {
  return DecodeAs(type, version, body);
}

std::string Encode(const core::Submission& submission) {
  return EncodeRecord(submission);
}
std::string Encode(const core::Run& run) {
  return EncodeRecord(run);
}
std::string Encode(const core::Worker& worker) {
  return EncodeRecord(worker);
}
std::string Encode(const core::Dataset& dataset) {
  return EncodeRecord(dataset);
}
std::string Encode(const core::View& view) {
  return EncodeRecord(view);
}
std::string Encode(const core::Token& token) {
  return EncodeRecord(token);
}
std::string Encode(const core::Allocation& allocation) {
  return EncodeRecord(allocation);
}
std::string Encode(const core::Finding& finding) {
  return EncodeRecord(finding);
}
std::string Encode(const core::Rates& rates) {
  return EncodeRecord(rates);
}
std::string Encode(const core::Preflight& preflight) {
  return EncodeRecord(preflight);
}
absl::StatusOr<core::Submission> DecodeSubmission(absl::string_view body) {
  return DecodeRecord<core::Submission>(body);
}
absl::StatusOr<core::Run> DecodeRun(absl::string_view body) {
  return DecodeRecord<core::Run>(body);
}
absl::StatusOr<core::Worker> DecodeWorker(absl::string_view body) {
  return DecodeRecord<core::Worker>(body);
}
absl::StatusOr<core::Dataset> DecodeDataset(absl::string_view body) {
  return DecodeRecord<core::Dataset>(body);
}
absl::StatusOr<core::View> DecodeView(absl::string_view body) {
  return DecodeRecord<core::View>(body);
}
absl::StatusOr<core::Token> DecodeToken(absl::string_view body) {
  return DecodeRecord<core::Token>(body);
}
absl::StatusOr<core::Allocation> DecodeAllocation(absl::string_view body) {
  return DecodeRecord<core::Allocation>(body);
}
absl::StatusOr<core::Finding> DecodeFinding(absl::string_view body) {
  return DecodeRecord<core::Finding>(body);
}
absl::StatusOr<core::Rates> DecodeRates(absl::string_view body) {
  return DecodeRecord<core::Rates>(body);
}
absl::StatusOr<core::Preflight> DecodePreflight(absl::string_view body) {
  return DecodeRecord<core::Preflight>(body);
}

}  // namespace assay::store
