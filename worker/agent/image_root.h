// The root file system of an image as bubblewrap mounts it.

#ifndef WORKER_AGENT_IMAGE_ROOT_H_
#define WORKER_AGENT_IMAGE_ROOT_H_

#include <map>
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

// The libraries of a GPU's driver that the node has and an image cannot bring, since they belong to
// the kernel's module: by their path inside, where images of NVIDIA's look for them too, the path
// outside. `folders`: where to look; of two with a name the first.
std::map<std::string, std::string> DriverLibraries(const std::vector<std::string>& folders);

}  // namespace assay::agent

#endif  // WORKER_AGENT_IMAGE_ROOT_H_
