// The root file system of an image as bubblewrap mounts it.

#ifndef WORKER_AGENT_IMAGE_ROOT_H_
#define WORKER_AGENT_IMAGE_ROOT_H_

#include <set>
#include <string>
#include <vector>

namespace assay::agent {

// Arguments that bind all that lies in the folder `root` below /, to be read, but for the paths
// `mounted`, on which something else will be mounted: folders on the way to these are made anew,
// since nothing can be made in one that is only bound. Fails for no image: what cannot be listed is
// not there.
std::vector<std::string> ImageArguments(const std::string& root,
                                        const std::set<std::string>& mounted);

}  // namespace assay::agent

#endif  // WORKER_AGENT_IMAGE_ROOT_H_
