// The two layers that a model needs so that a spatial group can share its samples (spatial.h):
// HaloLayer in front of a convolution, GatherLayer in front of what is not divided. The
// convolutions and pools between them do not know of it.
//
// Both go through the host's memory, unless the group's devices exchange by themselves
// (SpatialGroup::is_on_device).

#ifndef WORKER_ENGINE_SPATIAL_LAYERS_H_
#define WORKER_ENGINE_SPATIAL_LAYERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"

#include "worker/engine/backend.h"
#include "worker/engine/layer.h"
#include "worker/engine/spatial.h"
#include "worker/engine/tensor.h"

namespace assay {

// y = x with the neighbours' planes around it along the divided axes; zeros at the cube's border.
//
// Backward is the adjoint: the gradient of a halo plane goes to the rank that owns the plane, which
// adds it to its own. D goes before H in forward, on rows already extended, and after it in
// backward: so the corners travel in two steps and need no messages of their own.
class HaloLayer : public Layer {
 public:
  // `input`: this rank's block (B, D, H, W, C). `kernel`: of the convolution that follows.
  // `backend` and `group` must outlive the layer.
  HaloLayer(Backend* backend, SpatialGroup* group, const Shape& input, int64_t kernel);

  Shape output() const override { return extended_; }
  LayerLiveness liveness() const override { return {.waits_for_ranks = true}; }
  absl::Status Plan(LayerMemory memory, bool wants_dx) override;
  Tensor Forward(const Tensor& x, const Pass& pass) override;
  Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) override;

 private:
  // What is shared with one neighbour: planes of this block that are its halo, and the reverse.
  struct Border {
    int member = 0;
    Box inner;
    Box outer;
  };
  // Host memory of one message each way.
  struct Mail {
    std::vector<std::byte> sent, received;
  };
  // Hands out scratch memory, piece by piece.
  class Scratch;

  Box Strip(size_t axis, int64_t begin, int64_t extent) const;
  std::vector<Border> Borders(size_t axis) const;
  size_t BytesOf(const Box& box) const;
  Tensor Packed(const Box& box, void* scratch) const;
  void TakeOut(const Tensor& whole, const Box& box, void* scratch, std::vector<std::byte>* host);
  void PutIn(const std::vector<std::byte>& host, const Box& box, void* scratch,
             const Tensor& whole);
  void ExchangeHalo(size_t axis, const Tensor& y, void* scratch);
  void ReturnHalo(size_t axis, const Tensor& dy, void* scratch);
  void ExchangeHaloOnDevice(size_t axis, const Tensor& y, void* scratch);
  void ReturnHaloOnDevice(size_t axis, const Tensor& dy, void* scratch);

  Backend* const backend_;
  SpatialGroup* const group_;
  const Shape block_;     // (B, D, H, W, C)
  const Box interior_;    // where the block lies in the extended tensor
  const Shape extended_;  // (B, D + halo, H + halo, W, C)
  const Halo halo_;
  Tensor y_;   // extended_; zero outside of what was ever received
  Tensor dx_;  // block_; empty if nobody wants it
  std::array<Mail, 2> mail_;
  std::vector<std::byte> own_;
};

// y = the blocks of all members put together; all members have the same y and go on with it, so
// that whatever follows is computed by each of them alike.
//
// Backward takes this rank's block of dy, times the number of members: the mean of the gradients
// over all ranks, of which the members' are parts of a sum, is then that over all groups. Exact for
// the usual powers of two.
class GatherLayer : public Layer {
 public:
  // `input`: this rank's block (B, D, H, W, C). `backend` and `group` must outlive the layer.
  GatherLayer(Backend* backend, SpatialGroup* group, const Shape& input);

  Shape output() const override { return whole_; }
  LayerLiveness liveness() const override { return {.waits_for_ranks = true}; }
  absl::Status Plan(LayerMemory memory, bool wants_dx) override;
  Tensor Forward(const Tensor& x, const Pass& pass) override;
  Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) override;

 private:
  std::span<std::byte> BlockOf(int member);
  Box BoxOf(int member) const;
  template <typename Move>
  void ForEachRun(int member, const Move& move);
  void ForwardOnDevice(const Tensor& x, void* scratch);

  Backend* const backend_;
  SpatialGroup* const group_;
  const Shape block_;              // (B, D, H, W, C)
  const Shape whole_;              // (B, D * parts, H * parts, W, C)
  Tensor y_;                       // whole_
  Tensor dx_;                      // block_; empty if nobody wants it
  std::vector<std::byte> blocks_;  // of all members, one after the other
  std::vector<std::byte> host_;    // whole_
};

}  // namespace assay

#endif  // WORKER_ENGINE_SPATIAL_LAYERS_H_
