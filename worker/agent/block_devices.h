// Which block devices a file's data is read from.

#ifndef WORKER_AGENT_BLOCK_DEVICES_H_
#define WORKER_AGENT_BLOCK_DEVICES_H_

#include <sys/types.h>

#include <vector>

namespace assay::agent {

// Those of the open file's file system: the one that its number names, or, of btrfs, whose numbers
// name none, all that it consists of. Empty: it has none, or they are not known (tmpfs, NFS).
// Thread-safe.
std::vector<dev_t> BlockDevicesOf(int fd);

}  // namespace assay::agent

#endif  // WORKER_AGENT_BLOCK_DEVICES_H_
