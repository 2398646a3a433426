// Resources and events as they are shown to who sees a part of them (core::Sight). Of what is seen
// because it is published there are no names of people, nothing that was said about it inside, and
// nothing of the site's nodes.

#ifndef SERVER_API_PUBLISHED_VIEW_H_
#define SERVER_API_PUBLISHED_VIEW_H_

#include <optional>

#include "assay/v1/resources.pb.h"
#include "assay/v1/submission_service.pb.h"

#include "server/auth/identity.h"
#include "server/core/query.h"
#include "server/core/types.h"
#include "server/core/visibility.h"

namespace assay::api {

// As convert.h makes them, less what is not for `sight`, and of a run less the files that are not
// for `role`. Of kNothing they show no more than of kPublished.
v1::Submission ToProto(const core::Submission& submission, core::Sight sight);
v1::Run ToProto(const core::Run& run, core::Sight sight, auth::Role role);

// nullopt: the event is not for the row's sight.
std::optional<v1::Event> ToProtoIfSeen(const core::EventRow& row);
std::optional<v1::RunEvent> ToProtoIfSeen(const core::RunEvent& event, core::RunId run,
                                          core::Sight sight);

}  // namespace assay::api

#endif  // SERVER_API_PUBLISHED_VIEW_H_
