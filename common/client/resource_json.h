// Resources of the API as the JSON that `assay` prints. A field that is not known yet is absent; a
// member's unit is its name's end (score_minutes, bytes); times are RFC 3339 in UTC. Members are
// only ever added to a schema's version: a field that is new in the API is shown without a row
// here, under its own name (message_json.h). Pure functions.

#ifndef COMMON_CLIENT_RESOURCE_JSON_H_
#define COMMON_CLIENT_RESOURCE_JSON_H_

#include <optional>
#include <string>

#include "assay/v1/admin_service.pb.h"
#include "assay/v1/resources.pb.h"

#include "common/client/json.h"
#include "common/client/message_json.h"

namespace assay::client {

// What the JSON of resources, and of what they hold, has other than message_json.h would have it.
JsonTables ResourceTables();

Json EntryJson(const v1::Submission& submission);  // assay.entry/v1
Json SetJson(const v1::Submission& submission);    // assay.set/v1: the entry's runs as one thing
Json RunJson(const v1::Run& run);                  // assay.run/v1
Json NodeJson(const v1::Worker& worker);           // assay.node/v1
Json AllocationJson(const v1::Allocation& allocation);  // assay.allocation/v1
Json DatasetJson(const v1::Dataset& dataset);           // assay.dataset/v1
Json TokenJson(const v1::Token& token);                 // assay.token/v1
Json RoundJson(const v1::Round& round);                 // assay.round/v1
Json FindingJson(const v1::Finding& finding);
Json ReferenceJson(const v1::ReferenceConvergence& reference);  // an entry's member convergence
Json AuditJson(const v1::AuditEntry& entry);                    // assay.audit/v1
Json RunEventJson(const v1::RunEvent& event);                   // assay.run_event/v1

// "valid", "running": lower case, or "unknown" for a state newer than this program.
std::string StateText(v1::Submission::State state);
std::string StateText(v1::Run::State state);
std::string StateText(v1::Worker::State state);
std::string StateText(v1::Allocation::State state);

// Time to solution in seconds, from the log; nullopt while it is not known.
std::optional<double> TimeToSolutionSeconds(const v1::Run& run);

bool IsEnded(v1::Submission::State state);
bool IsEnded(v1::Run::State state);

}  // namespace assay::client

#endif  // COMMON_CLIENT_RESOURCE_JSON_H_
