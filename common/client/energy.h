// Energy to solution, as people read it beside the time. Pure functions of resources of the API.

#ifndef COMMON_CLIENT_ENERGY_H_
#define COMMON_CLIENT_ENERGY_H_

#include <optional>
#include <span>
#include <string>

#include "assay/v1/resources.pb.h"

#include "common/client/json.h"

namespace assay::client {

// Of one run, or the mean over those that a score is the mean of.
struct Energy {
  double joules = 0;
  double error_joules = 0;  // at most, for the time between readings
  bool is_node = false;     // of whole nodes; else of components
  int switch_count = 0;     // whose energy by their ratings is in it
  double switch_watts = 0;  // of all of them together
};

// What the run's nodes measured; nullopt if not all of them have a meter.
std::optional<Energy> EnergyOf(const v1::Run& run);

// The mean; nullopt unless all of them have an energy of the same kind.
std::optional<Energy> MeanEnergy(std::span<const v1::Run> runs);

// "1.234 MJ +- 0.6 kJ, whole nodes and 2 switches rated 900 W".
std::string EnergyText(const Energy& energy);

// The same of a run that has ended, or "not measured: ..." with the reason; empty before its end.
std::string EnergyText(const v1::Run& run);

// Members energy_joules, energy_error_joules, energy_scope, as a run has them.
void AddEnergy(const Energy& energy, Json* json);

}  // namespace assay::client

#endif  // COMMON_CLIENT_ENERGY_H_
