// The energy of a run from its power logs (rules specification, section 5.4): one file for each
// node, and one for each switch whose power is estimated. Pure functions of the files' bytes.

#ifndef COMMON_RULES_POWER_H_
#define COMMON_RULES_POWER_H_

#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/rules/score.h"

namespace assay::rules {

// What a node drew during the run, in joules where its readings are watts: the mean power between
// power_measurement_start and power_measurement_stop (without a stop: the last reading), corrected
// by conversion_eff, over `time_to_train_ms`. Of repeated starts and stops the last count, as in
// the official tool; readings behind the first stop do not. INVALID_ARGUMENT, naming what is
// missing, for a log without power_measurement_start, without readings after it, or with values
// that are no numbers.
absl::StatusOr<double> NodeEnergy(absl::string_view log, double time_to_train_ms);

// The same for a switch: its first interconnect_power_est. INVALID_ARGUMENT without one.
absl::StatusOr<double> SwitchEnergy(absl::string_view log, double time_to_train_ms);

// The energy that belongs to the score of `runs`: the mean over the runs that `time` averages
// over, times the scaling factor. `energies` is by run; none where `time` has no minutes or an
// averaged run has no energy.
std::optional<double> ScoredEnergy(const TimeToSolution& time,
                                   std::span<const std::optional<double>> energies,
                                   double scaling_factor);

}  // namespace assay::rules

#endif  // COMMON_RULES_POWER_H_
