// What an answer promises, compared with what was committed when it left.

#ifndef TESTS_SIM_ANSWERS_H_
#define TESTS_SIM_ANSWERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "server/core/command.h"
#include "server/core/types.h"

namespace assay::sim {

// One overload for each command whose answer promises something that lasts.
class AnswerCheck {
 public:
  AnswerCheck(const core::Reply& reply, const core::State& committed)
      : reply_(reply), committed_(committed) {}

  template <typename Body>
  void operator()(const Body&) const {}

  void operator()(const core::CreateSubmission& body) const {
    const core::Submission* made = Made();
    if (made == nullptr) return;
    EXPECT_EQ(made->spec.system, body.spec.system) << made->id;
  }
  void operator()(const core::ImportSubmission& body) const {
    const core::Submission* made = Made();
    if (made == nullptr) return;
    EXPECT_TRUE(made->is_imported && IsTerminal(made->state)) << made->id;
    EXPECT_EQ(made->source_path, body.source_path) << made->id;
  }
  void operator()(const core::CancelSubmission& body) const {
    const core::Submission* made = Made();
    if (made == nullptr) return;
    EXPECT_EQ(made->id, body.submission);
    EXPECT_EQ(made->state, core::SubmissionState::kCancelled) << made->id;
    for (const core::RunId run : made->runs)
      EXPECT_TRUE(IsTerminal(committed_.runs.at(run).state)) << run << " of " << made->id;
  }
  void operator()(const core::NoteSubmission& body) const {
    const core::Submission* made = Made();
    if (made == nullptr) return;
    bool is_kept = false;
    for (const core::Note& note : made->notes)
      is_kept = is_kept || note.text == body.text;
    EXPECT_TRUE(is_kept) << made->id << " has lost the note " << body.text;
  }
  void operator()(const core::PublishSubmission& body) const {
    const core::Submission* made = Made();
    if (made == nullptr) return;
    EXPECT_TRUE(IsTerminal(made->state)) << made->id;
    EXPECT_EQ(made->id, body.submission);
    EXPECT_GT(made->published_at_us, 0) << made->id;
  }
  void operator()(const core::WithdrawSubmission& body) const {
    const core::Submission* made = Made();
    if (made == nullptr) return;
    EXPECT_EQ(made->id, body.submission);
    EXPECT_TRUE(IsTerminal(made->state)) << made->id;
    EXPECT_GT(made->withdrawn_at_us, 0) << made->id;
    EXPECT_EQ(made->published_at_us, 0) << made->id;
  }
  void operator()(const core::PruneInstances& body) const {
    const core::Submission* made = Made();
    if (made == nullptr) return;
    EXPECT_EQ(made->pruned_runs, body.runs) << made->id;
    EXPECT_EQ(made->state, core::SubmissionState::kValid) << made->id;
  }
  void operator()(const core::AppendRunEvents& body) const {
    const core::Run& run = committed_.runs.at(body.run);
    EXPECT_EQ(body.generation, run.generation) << run.id << " takes from another generation";
    EXPECT_LE(std::get<core::AppendReply>(reply_).durable_seq,
              run.nodes.at(static_cast<size_t>(body.node_rank)).last_seq)
        << run.id;
  }
  void operator()(const core::RecordArtifact& body) const {
    const core::Run& run = committed_.runs.at(body.run);
    EXPECT_EQ(body.generation, run.generation) << run.id << " takes from another generation";
    bool is_kept = false;
    for (const auto* artifacts : {&run.artifacts, &run.late_artifacts})
      for (const core::ArtifactRef& artifact : *artifacts)
        is_kept = is_kept || artifact == body.artifact;
    EXPECT_TRUE(is_kept) << run.id << " has lost " << body.artifact.file_name;
  }
  void operator()(const core::CreateToken& body) const {
    EXPECT_EQ(Token().secret_sha256, body.secret_sha256);
  }
  void operator()(const core::RevokeToken&) const { EXPECT_TRUE(Token().is_revoked); }
  void operator()(const core::RedeemEnrolment&) const { EXPECT_TRUE(Token().is_revoked); }
  void operator()(const core::LabelWorker& body) const {
    const auto it = committed_.workers.find(body.worker);
    if (it == committed_.workers.end()) return;
    for (const auto& [name, value] : body.labels)
      EXPECT_EQ(it->second.operator_labels.at(name), value) << body.worker;
  }
  void operator()(const core::RevokeWorker& body) const {
    EXPECT_GT(committed_.workers.at(body.worker).certificate_generation, 0) << body.worker;
  }
  void operator()(const core::OrderCaches& body) const {
    for (const std::string& name : std::get<core::CachesReply>(reply_).workers) {
      bool is_kept = false;
      for (const core::CacheOrder& order : committed_.workers.at(name).cache_orders)
        is_kept = is_kept || order.dataset == body.dataset;
      EXPECT_TRUE(is_kept) << name << " has lost its order about " << body.dataset;
    }
  }
  void operator()(const core::PruneArtifacts& body) const {
    const auto it = committed_.submissions.find(body.submission);
    EXPECT_TRUE(it == committed_.submissions.end() || IsTerminal(it->second.state))
        << body.submission << " has lost files before its end";
  }
  void operator()(const core::GetServerInfo&) const {
    EXPECT_LE(std::get<core::ServerInfo>(reply_).last_seq, committed_.last_seq);
  }

 private:
  const core::Submission* Made() const {
    const core::SubmissionId id = std::get<core::SubmissionReply>(reply_).id;
    const auto it = committed_.submissions.find(id);
    EXPECT_TRUE(it != committed_.submissions.end()) << id << " was acknowledged and is not there";
    return it == committed_.submissions.end() ? nullptr : &it->second;
  }
  core::Token Token() const {
    const core::TokenId id = std::get<core::Token>(reply_).id;
    const auto it = committed_.tokens.find(id);
    EXPECT_TRUE(it != committed_.tokens.end()) << id << " was acknowledged and is not there";
    return it == committed_.tokens.end() ? core::Token{} : it->second;
  }

  const core::Reply& reply_;
  const core::State& committed_;
};

// `workers` as they were before the turn, `committed` when the answer leaves.
inline void CheckAnswer(const core::Command& command, const absl::StatusOr<core::Reply>& reply,
                        const std::map<std::string, core::Worker>& workers,
                        const core::State& committed) {
  const auto it = workers.find(command.principal);
  const bool is_revoked = command.certificate_generation.has_value() && it != workers.end() &&
                          *command.certificate_generation < it->second.certificate_generation;
  EXPECT_FALSE(is_revoked && reply.ok())
      << command.principal << " is served by a certificate that was revoked";
  if (reply.ok()) std::visit(AnswerCheck(*reply, committed), command.body);
}

}  // namespace assay::sim

#endif  // TESTS_SIM_ANSWERS_H_
