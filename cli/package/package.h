// assay package: what an organisation hands in for a round, checked as a whole and offline.

#ifndef CLI_PACKAGE_PACKAGE_H_
#define CLI_PACKAGE_PACKAGE_H_

#include <vector>

#include "cli/command/command.h"
#include "cli/terminal/print.h"
#include "common/package/package_check.h"

namespace assay::cli {

// One organisation's report: org, verdict, errors, warnings, findings, directories, repository.
Json PackageJson(const package::OrganizationReport& report);

std::vector<Command> PackageCommands();

}  // namespace assay::cli

#endif  // CLI_PACKAGE_PACKAGE_H_
