// gloo's side of allreduce_bench; started by it, one process for each rank.
//
//   allreduce_gloo RANK RANKS DIRECTORY     the ranks meet by files in DIRECTORY

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "tests/bench/allreduce_loop.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int rank = std::atoi(argv[1]);
  gloo::transport::tcp::attr address;
  address.hostname = "127.0.0.1";
  const auto context = std::make_shared<gloo::rendezvous::Context>(rank, std::atoi(argv[2]));
  gloo::rendezvous::FileStore store(argv[3]);
  auto device = gloo::transport::tcp::CreateDevice(address);
  context->connectFullMesh(store, device);
  assay::bench::MeasureAllReduce(assay::bench::AllReduceSide{
      .prints = rank == 0,
      .all_reduce =
          [&](float* values, size_t count) {
            gloo::AllreduceOptions options(context);
            options.setOutput(values, count);
            options.setReduceFunction(
                static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
            gloo::allreduce(options);
          },
      .barrier =
          [&] {
            gloo::BarrierOptions options(context);
            gloo::barrier(options);
          }});
  return 0;
}
