// How the first touch of a run's data was seen on its nodes, and what could have been before it.

#ifndef CLI_RUN_RUN_TOUCH_H_
#define CLI_RUN_RUN_TOUCH_H_

#include "cli/terminal/print.h"
#include "common/client/touch_records.h"

namespace assay::cli {

using client::TouchesOf;

// Makes them members of the run, with a table, and as another what their holes mean; the sentence
// of the weakest node stands for the run. At least one.
void AddTouches(Json touches, ShowView* view);

}  // namespace assay::cli

#endif  // CLI_RUN_RUN_TOUCH_H_
