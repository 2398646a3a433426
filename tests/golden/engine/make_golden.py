#!/usr/bin/env python3
"""Writes the golden numbers of the training engine: PyTorch's answers to our questions.

Usage: make_golden.py OUTPUT_DIRECTORY     (needs torch and numpy; a CPU build will do)

All in float64. Inputs and weights are not stored: both sides compute them from `noise` below, so
the files hold answers only. Tensors here are laid out as ours: maps (B, H, W, C), kernels
(k, k, in / groups, out).
"""

import json
import math
import sys

import numpy as np
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def noise(salt, shape):
    """Numbers in [-1, 1) from a hash of (salt, index); tests/worker/engine/golden.h has the same."""
    i = np.arange(int(np.prod(shape)), dtype=np.uint64)
    mask = np.uint64(0xFFFFFFFF)
    h = (i * np.uint64(2654435761) + np.uint64(salt) * np.uint64(40503) + np.uint64(12345)) & mask
    for _ in range(2):
        h ^= h >> np.uint64(15)
        h = (h * np.uint64(2246822519)) & mask
        h ^= h >> np.uint64(13)
    return (h.astype(np.float64) / 2.0**31 - 1.0).reshape(shape)


def chw(x):
    return torch.tensor(np.ascontiguousarray(np.moveaxis(x, -1, 1)))


def hwc(x):
    return np.moveaxis(x.detach().numpy(), 1, -1)


def kernel(w):
    """(k, k, in, out) -> (out, in, k, k); for a transposed convolution out and in swap names."""
    return torch.tensor(np.ascontiguousarray(w.transpose(3, 2, 0, 1)))


def flat(x):
    if isinstance(x, torch.Tensor):
        x = x.detach().numpy()
    return [float(f"{v:.12g}") for v in np.asarray(x).reshape(-1)]


def back_kernel(g):
    return g.permute(2, 3, 1, 0)


def conv_case(name, x_shape, filters, k=3, stride=1, dilation=1, groups=1):
    x = chw(noise(1, x_shape)).requires_grad_()
    w = kernel(noise(2, (k, k, x_shape[3] // groups, filters))).requires_grad_()
    y = F.conv2d(x, w, stride=stride, padding=dilation * (k - 1) // 2, dilation=dilation,
                 groups=groups)
    dy = noise(3, hwc(y).shape)
    y.backward(chw(dy))
    return {"name": name, "kind": "conv", "x_shape": x_shape, "filters": filters, "kernel": k,
            "stride": stride, "dilation": dilation, "groups": groups, "y": flat(hwc(y)),
            "dx": flat(hwc(x.grad)), "dw": flat(back_kernel(w.grad))}


def deconv_case(name, x_shape, filters):
    x = chw(noise(1, x_shape)).requires_grad_()
    w = kernel(noise(2, (3, 3, filters, x_shape[3]))).requires_grad_()  # torch: (in, out, k, k)
    y = F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1)
    y.backward(chw(noise(3, hwc(y).shape)))
    return {"name": name, "kind": "deconv", "x_shape": x_shape, "filters": filters,
            "y": flat(hwc(y)), "dx": flat(hwc(x.grad)), "dw": flat(back_kernel(w.grad))}


def norm_case(name, x_shape):
    norm = torch.nn.BatchNorm2d(x_shape[3])
    with torch.no_grad():
        norm.weight.copy_(torch.tensor(1 + 0.5 * noise(2, (x_shape[3],))))
        norm.bias.copy_(torch.tensor(0.5 * noise(4, (x_shape[3],))))
    x = chw(3 + 2 * noise(1, x_shape)).requires_grad_()
    y = F.relu(norm(x))
    y.backward(chw(noise(3, x_shape)))
    trained = hwc(y)
    norm.eval()
    return {"name": name, "kind": "norm", "x_shape": x_shape, "y": flat(trained),
            "dx": flat(hwc(x.grad)), "dscale": flat(norm.weight.grad),
            "dshift": flat(norm.bias.grad), "running_mean": flat(norm.running_mean),
            "running_variance": flat(norm.running_var),
            "eval_y": flat(hwc(F.relu(norm(x))))}


def class_weights():
    frequencies = (0.986267818390377, 0.0004578708870701058, 0.01327431072255291)
    return [f ** -0.125 for f in frequencies]


def labels_of(salt, shape):
    u = noise(salt, shape)
    return np.where(u < 0, 0, np.where(u < 0.5, 1, 2))


def weighted_loss(logits, labels):
    """Plain mean over pixels, not divided by the weights: the reference's."""
    each = F.cross_entropy(logits, torch.tensor(labels), torch.tensor(class_weights()),
                           reduction="none")
    return each.mean()


def loss_case(name, shape):
    logits = chw(4 * noise(1, shape)).requires_grad_()
    loss = weighted_loss(logits, labels_of(2, shape[:3]))
    loss.backward()
    return {"name": name, "kind": "loss", "x_shape": shape, "loss": float(loss),
            "dx": flat(hwc(logits.grad))}


def layers():
    return [
        conv_case("dense", (2, 5, 6, 3), 4),
        conv_case("strided", (1, 6, 8, 3), 4, stride=2),
        conv_case("strided odd", (1, 5, 7, 2), 3, stride=2),
        conv_case("dilated", (1, 7, 6, 3), 2, dilation=6),
        conv_case("pointwise", (2, 3, 4, 5), 6, k=1),
        conv_case("skip", (1, 6, 4, 4), 5, k=1, stride=2),
        conv_case("depthwise", (2, 5, 4, 6), 6, groups=6),
        conv_case("depthwise strided", (1, 6, 4, 6), 6, stride=2, groups=6),
        conv_case("depthwise dilated", (1, 6, 5, 4), 4, dilation=2, groups=4),
        conv_case("grouped", (1, 4, 5, 6), 4, groups=2),
        deconv_case("deconv", (2, 3, 4, 5), 3),
        norm_case("norm", (3, 4, 5, 3)),
        loss_case("loss", (2, 4, 5, 3)),
    ]


class Lamb:
    """APEX's FusedLAMB as its documentation and kernels state it, in float64."""

    def __init__(self, params, lr, weight_decay, betas=(0.9, 0.999), eps=1e-6, max_norm=1.0):
        self.params, self.lr, self.wd, self.eps, self.max_norm = params, lr, weight_decay, eps, max_norm
        self.betas, self.t = betas, 0
        self.m = [torch.zeros_like(p) for p in params]
        self.v = [torch.zeros_like(p) for p in params]
        self.param_groups = [{"lr": lr}]

    @torch.no_grad()
    def step(self):
        self.t += 1
        norm = math.sqrt(sum(float((p.grad ** 2).sum()) for p in self.params))
        clip = norm / self.max_norm if norm > self.max_norm else 1.0
        b1, b2 = self.betas
        for p, m, v in zip(self.params, self.m, self.v):
            g = p.grad / clip
            m.mul_(b1).add_(g, alpha=1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            u = (m / (1 - b1 ** self.t)) / ((v / (1 - b2 ** self.t)).sqrt() + self.eps) + self.wd * p
            pn, un = float(p.norm()), float(u.norm())
            ratio = pn / un if self.wd != 0 and pn > 0 and un > 0 else 1.0
            p.sub_(self.param_groups[0]["lr"] * ratio * u)


OPTIMIZERS = {
    "Adam": lambda p, lr, wd: torch.optim.Adam(p, lr=lr, eps=1e-6, weight_decay=wd),
    "AdamW": lambda p, lr, wd: torch.optim.AdamW(p, lr=lr, eps=1e-6, weight_decay=wd),
    "LAMB": lambda p, lr, wd: Lamb(p, lr, wd),
}


def optimizers():
    """Ten steps on two tensors, one of which begins at zero; gradients longer and shorter than 1."""
    cases = []
    for name, make in OPTIMIZERS.items():
        for decay in (0.0, 0.01):
            params = [torch.tensor(noise(1, (4, 3))), torch.zeros(5)]
            for p in params:
                p.requires_grad_()
            optimizer = make(params, 0.05, decay)
            history = []
            for step in range(1, 11):
                scale = 2.0 if step % 2 else 0.05
                rate = 0.05 if step < 6 else 0.01
                optimizer.param_groups[0]["lr"] = rate
                for i, p in enumerate(params):
                    p.grad = torch.tensor(scale * noise(100 * step + i, tuple(p.shape)))
                optimizer.step()
                history.append([flat(p) for p in params])
            cases.append({"name": name, "weight_decay": decay, "parameters": history})
    return cases


def torch_schedule(make, steps):
    """Rates of steps 1.. when the reference steps the scheduler once before the first use."""
    p = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=1.0)
    optimizer.param_groups[0]["initial_lr"] = 1.0
    scheduler = make(optimizer)
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


def schedules():
    schedule = torch.optim.lr_scheduler
    multistep = torch_schedule(lambda o: schedule.MultiStepLR(o, [4, 8], 0.1, last_epoch=0), 14)
    cosine = torch_schedule(lambda o: schedule.CosineAnnealingLR(o, 6, 0.1), 20)
    return [{"name": "multistep", "rates": flat(multistep)}, {"name": "cosine", "rates": flat(cosine)}]


class Net:
    """DeepCAM from its description, over a list of parameters named and ordered as ours."""

    def __init__(self, base, blocks):
        self.base, self.blocks = base, blocks
        self.params, self.names, self.buffers = [], [], []
        self.created = False

    def width(self, c):
        return max(1, c * self.base // 32)

    def param(self, name, shape, draw):
        if not self.created:
            salt = 1000 + len(self.params)
            self.params.append(draw(noise(salt, shape)).requires_grad_())
            self.names.append(name)
        tensor = self.params[self.cursor]
        assert self.names[self.cursor] == name
        self.cursor += 1
        return tensor

    def conv(self, x, name, filters, k=3, s=1, d=1, groups=1):
        cin = x.shape[1] // groups
        bound = math.sqrt(6.0 / (cin * k * k))
        w = self.param(name + "/kernel", (k, k, cin, filters), lambda n: kernel(bound * n))
        return F.conv2d(x, w, stride=s, padding=d * (k - 1) // 2, dilation=d, groups=groups)

    def deconv(self, x, name, filters):
        bound = math.sqrt(6.0 / (x.shape[1] * 9 / 4))
        w = self.param(name + "/kernel", (3, 3, filters, x.shape[1]), lambda n: kernel(bound * n))
        return F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1)

    def norm(self, x, name, relu):
        c = x.shape[1]
        w = self.param(name + "/norm/scale", (c,), lambda n: torch.tensor(1 + 0.1 * n))
        b = self.param(name + "/norm/shift", (c,), lambda n: torch.tensor(0.1 * n))
        y = F.batch_norm(x, None, None, w, b, training=True, eps=1e-5)
        return F.relu(y) if relu else y

    def sep(self, x, name, filters, s=1, d=1):
        c = x.shape[1]
        x = self.conv(x, name + "/depthwise", c, 3, s, d, groups=c)
        return self.conv(x, name + "/pointwise", filters, 1)

    def edge(self, x, name, filters, inner, s, relu):
        y = self.norm(self.sep(x, name + "/conv1", inner), name + "/conv1", True)
        y = self.norm(self.sep(y, name + "/conv2", filters), name + "/conv2", False)
        y = self.sep(y, name + "/conv3", filters, s)
        skip = self.norm(self.conv(x, name + "/skip", filters, 1, s), name + "/skip", False)
        return F.relu(y + skip) if relu else y + skip

    def middle(self, x, name):
        y = x
        for i in (1, 2, 3):
            conv = f"{name}/conv{i}"
            y = self.norm(self.sep(y, conv, x.shape[1]), conv, i < 3)
        return F.relu(y + x)

    def forward(self, x):
        self.cursor = 0
        w = self.width
        x = self.norm(self.conv(x, "conv1", w(32), s=2), "conv1", True)
        x = self.norm(self.conv(x, "conv2", w(64)), "conv2", True)
        low = self.edge(x, "block1", w(128), w(128), 2, True)
        x = self.edge(low, "block2", w(256), w(256), 2, True)
        x = self.edge(x, "block3", w(728), w(728), 2, True)
        for i in range(self.blocks):
            x = self.middle(x, f"block{i + 4}")
        x = self.edge(x, f"block{self.blocks + 4}", w(1024), w(728), 1, False)
        for i, c in enumerate((1536, 1536, 2048)):
            x = self.norm(self.sep(x, f"conv{i + 3}", w(c), d=2), f"conv{i + 3}", True)
        parts = []
        for d in (1, 6, 12, 18):
            name = f"pyramid/dilation{d}"
            parts.append(self.norm(self.conv(x, name, w(256), 1 if d == 1 else 3, d=d), name, True))
        mean = self.conv(x.mean((2, 3), keepdim=True), "pyramid/mean", w(256), 1)
        weight = self.param("pyramid/mean/affine/weight", (w(256),), lambda n: torch.tensor(1 + 0.1 * n))
        bias = self.param("pyramid/mean/affine/bias", (w(256),), lambda n: torch.tensor(0.1 * n))
        mean = F.relu(mean * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1))
        parts.append(mean.expand(-1, -1, x.shape[2], x.shape[3]))
        x = self.norm(self.conv(torch.cat(parts, 1), "pyramid/fuse", w(256), 1), "pyramid/fuse", True)
        x = self.norm(self.deconv(x, "decoder/deconv1a", w(256)), "decoder/deconv1a", True)
        x = self.norm(self.deconv(x, "decoder/deconv1b", w(256)), "decoder/deconv1b", True)
        low = self.norm(self.conv(low, "low_level", w(48), 1), "low_level", True)
        x = torch.cat((x, low), 1)
        x = self.norm(self.conv(x, "decoder/conv1", w(256)), "decoder/conv1", True)
        x = self.norm(self.conv(x, "decoder/conv2", w(256)), "decoder/conv2", True)
        x = self.conv(x, "decoder/conv3", w(256), 1)
        bias = self.param("decoder/conv3/bias", (w(256),), lambda n: torch.tensor(0.1 * n))
        x = x + bias.view(1, -1, 1, 1)
        x = self.norm(self.deconv(x, "decoder/deconv2", w(256)), "decoder/deconv2", True)
        x = self.deconv(x, "decoder/last", 3)
        self.created = True
        return x


def model_case(name, base, blocks, shape, steps):
    net = Net(base, blocks)
    x = chw(0.5 + 0.5 * noise(1, shape))
    labels = labels_of(2, shape[:3])
    losses, result = [], {}
    optimizer = None
    for step in range(max(steps, 1)):
        logits = net.forward(x)
        if step == 0:
            assert len(set(net.names)) == len(net.names)
            optimizer = Lamb(net.params, 0.01, 0.01)
            result = {"logits": flat(hwc(logits)[0, ::8, ::8])}
        loss = weighted_loss(logits, labels)
        losses.append(float(loss))
        for p in net.params:
            p.grad = None
        loss.backward()
        if step == 0:
            result["gradient_norms"] = flat([float(p.grad.norm()) for p in net.params])
        if steps > 0:
            optimizer.step()
    return {"name": name, "base_filters": base, "middle_blocks": blocks, "shape": shape,
            "parameters": sum(p.numel() for p in net.params), "names": net.names,
            "losses": [float(f"{v:.12g}") for v in losses], **result}


def models():
    return [model_case("narrow", 4, 1, (2, 32, 48, 16), 10),
            model_case("reference", 32, 16, (2, 32, 32, 16), 0)]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, make in (("layers", layers), ("optimizers", optimizers), ("schedules", schedules),
                       ("models", models)):
        with open(f"{sys.argv[1]}/{name}.json", "w", encoding="utf-8") as out:
            json.dump({"torch": torch.__version__, "cases": make()}, out)
            out.write("\n")


if __name__ == "__main__":
    main()
