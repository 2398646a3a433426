// The engines that the GPUs of a run compute with: stored with the run, and the same on all ranks.

#ifndef WORKER_TRAINER_ENGINES_H_
#define WORKER_TRAINER_ENGINES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/clock.h"
#include "worker/comm/collective.h"
#include "worker/engine/engine_choice.h"
#include "worker/trainer/spec.h"

namespace assay {

// Whether the backend of this name chooses among engines.
bool ChoosesEngines(absl::string_view backend);

// Where rank 0 writes the run's choices.
std::string EnginesPath(const TrainerSpec& spec);

// Those that the run is to take, on rank 0: of the process that it resumes, else those of
// RunSpec.engine_choices_path. None elsewhere or without either. Errors of ReadEngines.
absl::StatusOr<EngineChoices> StoredEngines(const TrainerSpec& spec);

// An assay.v1.EngineChoices as text. INVALID_ARGUMENT: "path:line:column: " and what is wrong
// there. Other codes: it cannot be read.
absl::StatusOr<EngineChoices> ReadEngines(const std::string& path);
// The same file, whole or not at all.
absl::Status WriteEngines(const std::string& path, const EngineChoices& engines);

// Rank 0's `engines` on every rank, all of which call it; those of the others are not used. Errors
// of the collective.
absl::StatusOr<EngineChoices> ShareEngines(const EngineChoices& engines, comm::Collective* comm,
                                           MonoTime deadline);

}  // namespace assay

#endif  // WORKER_TRAINER_ENGINES_H_
