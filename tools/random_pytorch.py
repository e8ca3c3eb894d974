#!/usr/bin/env python3
"""Random PyTorch programs, seeded: exported, decomposed, scripted and traced, each compared with what eager PyTorch computes.

    random_pytorch.py DIR [--seeds 0:200] [--forms export,core,script,trace] [--tombolo PATH]

Programs mix element-wise functions, reductions, shapes, views and writes in place through them, indexing, types that are promoted,
layers with weights, and for scripts branches and loops that depend on data. All variables that are left are results,
so that a write that does not arrive somewhere is seen. A statement is kept when eager PyTorch runs it at both sizes of the
inputs. Prints what differs, with the program, what takes one size of inputs only ("fixed"), and counts what is refused by reason.
Needs torch.
"""
import argparse
import collections
import importlib.util
import json
import os
import random
import re
import shutil
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

HEAD = """import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(%d)
%s
    def forward(self, %s):
%s
"""


class Writer:
    """Grows a program statement by statement; every variable is held at both sizes."""

    def __init__(self, seed, control):
        import torch
        self.t, self.r, self.control = torch, random.Random(seed), control
        self.seed, self.lines, self.weights, self.count = seed, [], [], 0
        generator = torch.Generator().manual_seed(seed)
        self.inputs = []
        shared = self.r.choice([(2, 3), (3, 4), (4, 2)])
        for i in range(self.r.choice([1, 2, 2, 3])):
            shape = [shared] + [self.r.choice([2, 3, 4, 5]) for _ in range(self.r.choice([0, 1, 1, 2, 2, 3]))]
            kind = self.r.choice(["float32"] * 5 + ["float64", "int64", "int32", "bool"])
            pair = []
            for size in (0, 1):
                dims = [d[size] if isinstance(d, tuple) else d for d in shape]
                x = torch.randn(dims, generator=generator)
                pair.append(x.to(getattr(torch, kind)) if kind.startswith("float") else
                            (x * 3).round().to(getattr(torch, kind)) if kind.startswith("int") else x > 0)
            self.inputs.append(("x%d" % i, pair))
        self.scopes = [{"torch": torch, "F": torch.nn.functional, "self": self.module(size)} for size in (0, 1)]
        self.variables = []
        for name, pair in self.inputs:
            for size in (0, 1):
                self.scopes[size][name] = pair[size].clone()
            self.variables.append(name)

    def module(self, _):
        return type("Weights", (), {})()

    def value(self, name, size=0):
        return self.scopes[size][name]

    def pick(self, kinds=("float32", "float64"), least=0, most=9):
        names = [n for n in self.variables if str(self.value(n).dtype)[6:] in kinds and least <= self.value(n).dim() <= most]
        return self.r.choice(names[-4:] + names) if names else None

    def weight(self, *shape):
        name = "w%d" % len(self.weights)
        generator = self.t.Generator().manual_seed(self.seed * 100 + len(self.weights))
        value = self.t.randn(shape, generator=generator) * 0.5
        self.weights.append("        self.%s = nn.Parameter(torch.randn(%s, generator=torch.Generator().manual_seed(%d)) * 0.5)" % (
            name, list(shape), self.seed * 100 + len(self.weights)))
        for scope in self.scopes:
            setattr(scope["self"], name, value)
        return "self." + name

    def dim(self, name):
        rank = max(self.value(name).dim(), 1)
        return self.r.randrange(-rank, rank)

    def fixed(self, name):
        """An axis whose size is the same at both sizes of the inputs."""
        a, b = self.value(name, 0), self.value(name, 1)
        axes = [i for i in range(a.dim()) if a.shape[i] == b.shape[i]]
        axis = self.r.choice(axes) if axes else None
        return axis if axis is None or self.r.random() < 0.5 else axis - a.dim()

    def attempt(self, text):
        """Runs a statement at both sizes; keeps it when both succeed with decent values."""
        t = self.t
        saved = [{k: v.clone() for k, v in scope.items() if isinstance(v, t.Tensor)} for scope in self.scopes]
        aliases = [dict(scope) for scope in self.scopes]
        try:
            for scope in self.scopes:
                with t.no_grad():
                    exec(text, scope)
                for v in scope.values():
                    if isinstance(v, t.Tensor):
                        if v.numel() > 4000 or v.dim() > 5:
                            raise ValueError("large")
                        if v.is_floating_point() and v.numel() and not (bool(v.isfinite().all()) and float(v.abs().max()) < 1e3):
                            raise ValueError("values")
                        if v.is_complex():
                            raise ValueError("complex")
            pairs = [{k for k, v in scope.items() if isinstance(v, t.Tensor)} for scope in self.scopes]
            if any(self.scopes[0][k].dtype != self.scopes[1][k].dtype or self.scopes[0][k].dim() != self.scopes[1][k].dim() for k in pairs[0]):
                raise ValueError("ranks")
            return True
        except (Exception, SystemExit):
            for scope, values, old in zip(self.scopes, saved, aliases):
                for name in [k for k in scope if k not in old]:
                    del scope[name]
                scope.update(old)
                for k, v in values.items():
                    try:
                        old[k].data.copy_(v)
                    except RuntimeError:  # expanded: its base is restored; or of another shape by now
                        if old[k].shape != v.shape:
                            scope[k] = v
            return False

    def expression(self):
        r = self.r
        kind = r.choice(["unary"] * 4 + ["binary"] * 5 + ["scalar"] * 2 + ["reduce"] * 3 + ["shape"] * 6 + ["index"] * 4 + ["layer"] * 3 + ["type"] * 2 + ["integer"] * 2 + ["bool"] * 2)
        a, b = self.pick(), self.pick()
        if kind == "unary" and a:
            f = r.choice(["torch.relu({0})", "torch.sigmoid({0})", "torch.tanh({0})", "{0}.exp().clamp(max=50)", "{0}.abs()", "-{0}", "torch.sin({0})", "{0}.abs().sqrt()", "torch.erf({0})",
                          "{0}.sign()", "{0}.abs().log1p()", "F.gelu({0})", "F.silu({0})", "F.softplus({0})", "F.hardswish({0})", "F.leaky_relu({0}, 0.2)", "F.elu({0})", "{0}.square()",
                          "{0}.clamp(-1, 1.5)", "F.mish({0})", "F.hardsigmoid({0})", "{0}.detach()", "{0}.clone()", "F.dropout({0}, 0.3, False)", "torch.rsqrt({0}.abs() + 1)", "F.selu({0})", "{0}.atan()",
                          "F.softsign({0})", "F.relu6({0})", "F.celu({0}, 0.7)", "torch.expm1({0}.clamp(max=3))", "{0}.contiguous()", "torch.nan_to_num({0})", "torch.ones_like({0})", "torch.zeros_like({0})", "F.tanhshrink({0})", "F.threshold({0}, 0.1, 2.0)"])
            return f.format(a)
        if kind == "binary" and a:
            b = self.pick(("float32", "float64", "int64", "int32", "bool"))
            f = r.choice(["{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / ({1}.abs() + 1)", "torch.maximum({0}, {1})", "torch.where({0} > {1}, {0}, {1})", "torch.add({0}, {1}, alpha=2)", "torch.rsub({0}, {1})",
                          "torch.hypot({0}, {1})", "torch.atan2({0}, {1})", "torch.remainder({0}, {1}.abs() + 1.5)", "torch.fmod({0}, {1}.abs() + 1.5)", "torch.lerp({0}, {1}, 0.3)", "{0}.abs().pow({1}.clamp(0, 2))", "torch.minimum({0}, {1})",
                          "torch.addcmul({0}, {1}, {0}, value=0.5)", "torch.dist({0}, {1})", "torch.mul({0}, {1}).sum()", "torch.where({1} > 0, {0}, 0.5)", "{0}.masked_fill({1} > 0, -1.0)"])
            return f.format(a, b)
        if kind == "scalar" and a:
            return r.choice(["{0} + 2", "1 - {0}", "{0} * 0.5", "{0} / 3", "{0} ** 2", "{0} % 1.7", "{0} // 1.3", "2.0 / ({0}.abs() + 1)", "{0} > 0.1", "{0} == 0", "{0} * True", "torch.pow(2.0, {0}.clamp(-3, 3))"]).format(a)
        if kind == "reduce" and a:
            d, k = self.dim(a), r.choice(["", ", keepdim=True"])
            return r.choice(["{0}.sum({1}{2})", "{0}.mean({1}{2})", "{0}.amax({1}{2})", "{0}.amin(dim={1}{2})", "{0}.max({1}{2})[0]", "{0}.min({1}{2}).values", "{0}.prod({1}{2})", "{0}.var({1}, unbiased=False{2})", "torch.std({0}, {1}, correction=0{2})",
                             "torch.logsumexp({0}, {1}{2})", "{0}.norm(2, {1}{2})", "{0}.cumsum({1})", "F.softmax({0}, {1})", "F.log_softmax({0}, {1})", "{0}.sum()", "{0}.mean()", "{0}.max()", "({0} > 0).any({1}{2})", "({0} > -1).all({1}{2})", "{0}.cumprod({1})",
                             "{0}.sort({1})[0]", "{0}.abs().sum({1}{2})", "F.normalize({0}, dim={1})", "torch.linalg.vector_norm({0}, 1, {1}{2})", "({0} > 0).sum({1}{2})", "{0}.cummax({1})[0]", "{0}.logcumsumexp({1})", "torch.count_nonzero({0}, {1})"]).format(a, d, k)
        if kind == "shape":
            a = self.pick(("float32", "float64", "int64", "int32", "bool"))
            if not a:
                return None
            v, d, e = self.value(a), self.dim(a), self.dim(a)
            order = list(range(v.dim()))
            r.shuffle(order)
            dims = list(v.shape)
            f = self.fixed(a)
            choices = ["{0}.transpose({1}, {2})", "{0}.permute(%s)" % order, "{0}.unsqueeze({1})", "{0}.squeeze()", "{0}.squeeze({1})", "{0}.flatten()", "{0}.reshape(-1)", "{0}.reshape({0}.size(0), -1)", "{0}.view({0}.size(0), -1)", "{0}.flip({1})",
                       "{0}.roll(1, {1})", "torch.cat([{0}, {0}], {1})", "torch.stack([{0}, {0}], {1})", "{0}.chunk(2, {1})[0]", "{0}.narrow({1}, 0, 1)", "{0}.select({1}, -1)", "{0}[:1]", "{0}[-1:]", "{0}[..., :2]", "{0}[None]", "{0}.movedim({1}, {2})",
                       "{0}.repeat_interleave(2, {1})", "{0}.expand(2, *{0}.shape)" if not self.control else "{0}.unsqueeze(0).expand(2, %s)" % ", ".join(["-1"] * v.dim() or ["1"]), "{0}.unsqueeze(-1).expand(%s)" % ", ".join(["-1"] * v.dim() + ["3"]), "{0}.diagonal(0, {1}, {2})",
                       "{0}.unfold({1}, 2, 1)", "F.pad({0}, (1, 2))", "F.pad({0}, (0, 1, 2, 0), value=1.0)", "{0}.tril()", "{0}.triu(1)", "{0}.tile(2)", "{0}.t()", "{0}.mT", "{0}[::2]", "{0}[..., 1::2]", "{0}.view(-1)", "{0}.unbind({1})[0]", "{0}.split(1, {1})[-1]",
                       "{0}.swapaxes({1}, {2})", "{0}.reshape(2, -1)", "{0}.transpose({1}, {2}).reshape(-1)", "{0}.transpose({1}, {2}).contiguous()", "{0}.flatten({1})", "torch.atleast_2d({0})", "torch.broadcast_tensors({0}, {0}[:1])[1]", "{0}.reshape({0}.shape)", "{0}.view_as({0})", "torch.rot90({0})"]
            if f is not None:
                choices += ["{0}.unflatten(%d, (1, %d))" % (f, dims[f]), "{0}.select(%d, %d)" % (f, r.randrange(-dims[f], dims[f]) if dims[f] else 0), "{0}.split([1, %d], %d)[1]" % (max(dims[f] - 1, 0), f), "torch.tensor_split({0}, 2, %d)[0]" % f]
            return r.choice(choices).format(a, d, e)
        if kind == "index":
            a = self.pick(("float32", "float64", "int64", "bool"), 1)
            if not a:
                return None
            d = self.dim(a)
            i = self.pick(("int64",), 1)
            return r.choice(["{0}.index_select({1}, torch.tensor([0, 1, 0]))", "torch.gather({0}, {1}, torch.zeros_like({0}, dtype=torch.int64))", "{0}[torch.tensor([1, 0])]", "{0}[:, torch.tensor([1, 0, 1])]", "{0}[torch.tensor([[0, 1], [1, 0]])]",
                             "torch.take_along_dim({0}, torch.ones_like({0}, dtype=torch.int64) % {0}.size({1}), {1})", "{0}[torch.tensor([0, 1]), torch.tensor([1, 1])]", "{0}[..., -1]", "{0}[0]", "{0}[1, :1]", "{0}[:, None]", "{0}[torch.tensor([True, False] + [True] * ({0}.size(0) - 2))]" if False else "{0}[-2:]",
                             "torch.index_select({0}, {1}, torch.arange({0}.size({1})).flip(0))", "{0}.scatter({1}, torch.zeros_like({0}, dtype=torch.int64), {0})", "{0}.index_fill({1}, torch.tensor([0]), 1)", "torch.argsort({0}.reshape(-1), stable=True)", "{0}.topk(2, {1})[0]",
                             "torch.nonzero({0}).size(0) * {0}" if self.control else "{0}.clone()", "{0}[:, :, None]", "{0}[%s %% 2]" % i if False else "{0}[[0, 1]]", "torch.take({0}, torch.tensor([0, 2, 1]))", "{0}.index_add({1}, torch.tensor([0, 0]), {0}.narrow({1}, 0, 2))"]).format(a, d)
        if kind == "layer":
            a = self.pick(("float32",), 1)
            if not a:
                return None
            axes = self.value(a).dim()
            last = self.value(a).shape[-1]
            if self.value(a, 1).shape[-1] != last or not last:
                return None
            choices = ["F.linear(%s, %s)" % (a, self.weight(3, last)), "torch.matmul(%s, %s)" % (a, self.weight(last, 2)), "F.layer_norm(%s, [%d])" % (a, last), "F.glu(torch.cat([%s, %s], -1))" % (a, a), "torch.einsum('...i,ij->...j', %s, %s)" % (a, self.weight(last, 4)),
                       "F.prelu(%s, %s)" % (a, self.weight(1)), "F.rms_norm(%s, [%d])" % (a, last)]
            if axes == 3:
                channels = self.value(a).shape[1]
                choices += ["torch.bmm(%s, %s.transpose(1, 2))" % (a, a), "F.max_pool1d(%s, 2, 1)" % a, "F.avg_pool1d(%s, 2, 1, 1)" % a, "F.interpolate(%s, scale_factor=2.0)" % a, "F.adaptive_avg_pool1d(%s, 2)" % a, "F.scaled_dot_product_attention(%s, %s, %s)" % (a, a, a)]
                if self.value(a, 1).shape[1] == channels:
                    choices += ["F.conv1d(%s, %s, padding=1)" % (a, self.weight(2, channels, 3)), "F.group_norm(%s, 1)" % a]
            if axes == 4:
                channels = self.value(a).shape[1]
                choices += ["F.max_pool2d(%s, 2, 1)" % a, "F.interpolate(%s, scale_factor=2.0, mode='bilinear', align_corners=%s)" % (a, self.r.random() < 0.5), "F.adaptive_avg_pool2d(%s, 1)" % a, "F.pixel_unshuffle(F.pad(%s, (0, 1, 0, 1)), 1)" % a]
                if self.value(a, 1).shape[1] == channels:
                    choices += ["F.conv2d(%s, %s, padding=1)" % (a, self.weight(2, channels, 3, 3)), "F.conv_transpose2d(%s, %s, stride=2)" % (a, self.weight(channels, 2, 2, 2)), "F.instance_norm(%s)" % a]
            return r.choice(choices)
        if kind == "type":
            a = self.pick(("float32", "float64", "int64", "int32", "bool"))
            return r.choice(["{0}.to(torch.int64)", "{0}.float()", "{0}.double()", "{0} > 0", "{0}.long()", "{0}.to(torch.int32)", "{0}.bool().float()", "{0}.type_as({1})", "{0}.half().float()", "{0}.to({1}.dtype)", "{0}.abs().to(torch.uint8).float()"]).format(a, self.pick(("float32", "int64", "bool", "float64")) or a) if a else None
        if kind == "integer":
            a, b = self.pick(("int64", "int32")), self.pick(("int64", "int32", "bool"))
            return r.choice(["{0} + {1}", "{0} * {1}", "{0} // 2", "{0} // -3", "{0} % 3", "{0} % -2", "{0} / 2", "{0} & 3", "{0} | {1}", "{0} ^ {1}", "{0} << 1", "{0} >> 1", "{0}.sum()", "{0}.sum(0)", "{0}.float().mean()", "torch.div({0}, 2, rounding_mode='trunc')", "torch.div({0}, -2, rounding_mode='floor')",
                             "{0}.remainder(3)", "{0}.fmod(-3)", "{0} ** 2", "{0}.abs()", "-{0}", "~{0}", "{0} + 1.5", "{0} == {1}", "{0}.clamp(min=0)", "{0}.cumsum(0)", "torch.true_divide({0}, 3)", "{0}.max()", "F.one_hot({0}.abs() % 4, 4)", "{0}.sign()", "torch.bincount({0}.reshape(-1).abs() % 5, minlength=5)"]).format(a, b or a) if a else None
        if kind == "bool":
            a, b = self.pick(("bool",)), self.pick(("bool",))
            return r.choice(["{0} & {1}", "{0} | {1}", "~{0}", "{0} ^ {1}", "{0}.sum()", "{0}.float() * 2", "{0}.any()", "{0}.all(0)", "torch.logical_not({0})", "{0} + {1}", "{0} * 3", "torch.where({0}, 1.5, -0.5)", "torch.where({0}, 2, 3)", "{0}.to(torch.int64) - 1", "{0}.sum(-1)", "{0}.cumsum(0)", "{0}.to(torch.float32).mean(0)"]).format(a, b) if a else None
        return None

    def write(self):
        """A statement that changes a tensor in place, perhaps through a view."""
        r = self.r
        a = self.pick(("float32", "float32", "float64", "int64"))
        if not a or a in dict(self.inputs):
            return None
        b = self.pick(("float32", "float64", "int64"))
        d = self.dim(a)
        target = r.choice([a] * 4 + ["%s[0]", "%s[1:]", "%s[..., -1]", "%s[:, 0]", "%s.transpose(0, -1)", "%s.view(-1)", "%s.reshape(-1)[:2]", "%s.select(" + str(d) + ", 0)", "%s[::2]", "%s.unsqueeze(0)", "%s.diagonal()", "%s.flatten()", "%s.t()[0]", "%s.chunk(2, " + str(d) + ")[1]", "%s[None, 0]"])
        target = target % a if "%s" in target else target
        return r.choice(["{0}.add_(1)", "{0}.mul_(0.5)", "{0}.zero_()", "{0}.fill_(2)", "{0}.clamp_(-1, 1)", "{0}.relu_()", "{0}.neg_()", "{0}.sub_({1})", "{0}.add_({1})", "{0} += 1", "{0} *= {1}", "{0}.copy_({1})", "{0}.masked_fill_({0} > 0, -1)", "{0}.tanh_()", "{0}[...] = 1", "{2}[0] = 0", "{2}[..., 1] = {2}[..., 0].clone()",
                         "{2}[:, 1:] = 3", "{2}[torch.tensor([0, 1])] = 1", "{2}[{2} > 0] = 0.25", "{2}[1:] -= 1", "{2}[-1] += {2}[0]", "{2}.index_add_({3}, torch.tensor([1, 0]), {2}.narrow({3}, 0, 2).clone())", "{2}.scatter_({3}, torch.zeros_like({2}, dtype=torch.int64), 1)", "{2}.transpose_({3}, 0)", "{2}.unsqueeze_(0)",
                         "{2}.index_put_((torch.tensor([0, 1]),), torch.ones(1), accumulate=True)" if "float32" in str(self.value(a).dtype) else "{2}.abs_()", "{2}.squeeze_()", "{0}.round_()"]).format(target, b, a, d)

    def block(self, depth, budget, indent):
        while budget > 0:
            budget -= 1
            r = self.r.random()
            if self.control and depth < 2 and r < 0.2:
                self.branch(depth, indent)
                continue
            if r < 0.45:
                text = self.write()
            else:
                expression = self.expression()
                reuse = self.r.random() < (0.5 if depth else 0.1) and [n for n in self.variables if n not in dict(self.inputs)]
                name = self.r.choice(reuse) if reuse else "v%d" % self.count
                text = expression and "%s = %s" % (name, expression)
                if text and depth and reuse and not self.keeps(name, expression):
                    continue
            if not text or not self.attempt(text):
                continue
            self.lines.append(indent + text)
            name = re.match(r"(v\d+) = ", text)
            if name and name.group(1) not in self.variables:
                self.count += 1
                self.variables.append(name.group(1))

    def keeps(self, name, expression):
        """In branches and loops a variable keeps its type and shape."""
        try:
            for scope in self.scopes:
                with self.t.no_grad():
                    made = eval(expression, dict(scope))
                if made.dtype != scope[name].dtype or made.shape != scope[name].shape:
                    return False
            return True
        except Exception:
            return False

    def branch(self, depth, indent):
        """if / for / while around statements: run once here, for both ways to be valid."""
        kind = self.r.choice(["if", "if", "else", "for", "while", "list"])
        a = self.pick(("float32", "float64"))
        if not a:
            return
        saved = [{k: v.clone() for k, v in s.items() if isinstance(v, self.t.Tensor)} for s in self.scopes]
        before, at = list(self.variables), len(self.lines)
        if kind in ("if", "else"):
            self.lines.append("%sif bool(%s.sum() > %.1f):" % (indent, a, self.r.uniform(-1, 1)))
        elif kind == "for":
            self.lines.append("%sfor i%d in range(%s.size(0)):" % (indent, depth, a) if self.value(a).dim() else "%sfor i%d in range(3):" % (indent, depth))
        elif kind == "while":
            self.lines.append("%sn%d = torch.zeros((), dtype=torch.int64)" % (indent, len(self.lines)))
            self.lines.append("%swhile bool(%s < 3):" % (indent, self.lines[-1].split()[0]))
        else:
            self.lines.append("%sl%d = [%s]" % (indent, at, a))
            self.lines.append("%sfor i%d in range(int(torch.tensor(%s.dim()).item()) + 1):" % (indent, depth, a))
        inner = len(self.lines)
        self.block(depth + 1, self.r.randrange(2, 5), indent + "    ")
        if kind == "while":
            self.lines.append("%s    %s += 1" % (indent, self.lines[inner - 2].split()[0]))
        if kind == "list":
            self.lines.append("%s    l%d.append(%s)" % (indent, at, self.r.choice([a, a + " * 2", a + ".clone()"])))
        if len(self.lines) == inner:
            self.lines.append(indent + "    pass")
        self.variables = before
        if kind == "else":
            self.lines.append(indent + "else:")
            at_else = len(self.lines)
            self.block(depth + 1, self.r.randrange(1, 4), indent + "    ")
            if len(self.lines) == at_else:
                self.lines.append(indent + "    pass")
            self.variables = before
        if kind == "list":
            name = "v%d" % self.count
            self.count += 1
            self.lines.append("%s%s = torch.stack(l%d)" % (indent, name, at))

    def program(self):
        for name, _ in self.inputs:
            if self.r.random() < 0.7 and self.attempt("v%d = %s.clone()" % (self.count, name)):
                self.lines.append("        v%d = %s.clone()" % (self.count, name))
                self.variables.append("v%d" % self.count)
                self.count += 1
        self.block(0, self.r.randrange(4, 16), "        ")
        names = [n for n in self.variables if n not in dict(self.inputs)]
        if not names:
            return None
        if self.control:
            names += [m.group(1) for m in re.finditer(r"^        (v\d+) = torch.stack\(l", "\n".join(self.lines), re.M)]
        chosen = sorted(set(names), key=names.index)[-8:]
        self.lines.append("        return (%s,)" % ", ".join(chosen))
        return HEAD % (self.seed, "\n".join(self.weights) or "        pass", ", ".join(n for n, _ in self.inputs), "\n".join(self.lines))


def load(path, seed):
    spec = importlib.util.spec_from_file_location("random_program_%d" % seed, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.M().eval()


def make(root, seed, form):
    """One program in one form; why not, where it cannot be made."""
    import numpy as np
    import torch
    from torch.export import Dim
    writer = Writer(seed, form == "script" and seed % 2 == 1)
    source = writer.program()
    if not source:
        return "empty"
    folder = os.path.join(root, form, "%d" % seed)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "program.py")
    with open(path, "w") as file:
        file.write(source)
    model = load(path, seed)
    sets = [[pair[size] for _, pair in writer.inputs] for size in (0, 1)]
    clones = lambda values: tuple(v.clone() for v in values)
    arrays = {}
    try:
        with torch.no_grad():
            if form in ("export", "core"):
                dynamic = tuple({0: Dim("n", min=2, max=16)} for _ in sets[0])
                try:
                    program = torch.export.export(model, clones(sets[0]), dynamic_shapes=dynamic)
                except Exception:
                    program = torch.export.export(model, clones(sets[0]))
                    sets = sets[:1]
                if form == "core":
                    program = program.run_decompositions()
                torch.export.save(program, os.path.join(folder, "model.pt2"))
            elif form == "trace":
                program = torch.jit.trace(model, clones(sets[0]), check_trace=False)
                torch.jit.save(program, os.path.join(folder, "model.pt"))
                program = torch.jit.load(os.path.join(folder, "model.pt"))  # numbers in it are 0-d tensors by now
                sets = sets[:1] if seed % 3 else sets  # other sizes: what the trace itself gives
            else:
                program = torch.jit.script(model)
                torch.jit.save(program, os.path.join(folder, "model.pt"))
            for k, values in enumerate(sets):
                run = program if form in ("trace", "script") else model
                given = clones(values)
                outputs = [o.clone() for o in run(*given)]
                for i, v in enumerate(values):
                    arrays["in%s_%d" % (k + 1 if k else "", i)] = v.numpy()
                for i, v in enumerate(outputs):
                    arrays["out%s_%d" % (k + 1 if k else "", i)] = v.detach().numpy()
        np.savez(os.path.join(folder, "io.npz"), **arrays)
        with open(os.path.join(folder, "case.json"), "w") as file:
            json.dump({"rtol": 2e-3, "atol": 2e-3}, file)
    except Exception as error:
        shutil.rmtree(folder)
        return re.sub(r"[\d.]+", "N", "%s: %s" % (type(error).__name__, str(error).strip().split("\n")[0]))[:120]
    return ""


REFUSED = re.compile(r"unsupported|cannot be converted|not supported|depends on data|no handler|random", re.I)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir")
    parser.add_argument("--seeds", default="0:100")
    parser.add_argument("--forms", default="export,core,script,trace")
    parser.add_argument("--tombolo", default="build/release/tombolo")
    args = parser.parse_args()
    first, last = (int(x) for x in args.seeds.split(":"))
    import torch
    torch.set_num_threads(1)
    unmade = collections.Counter()
    for form in args.forms.split(","):
        for seed in range(first, last):
            if not os.path.exists(os.path.join(args.dir, form, str(seed), "case.json")):
                why = make(args.dir, seed, form)
                if why:
                    unmade[form + " " + why] += 1
    for why, count in unmade.most_common(8):
        print("not made %4d  %s" % (count, why))
    result = subprocess.run([args.tombolo, "conformance", args.dir, "--json", "--jobs", "1"], capture_output=True, text=True)
    totals, reasons = collections.Counter(), collections.defaultdict(list)
    for case in json.loads(result.stdout)["cases"]:
        form = case["name"].split("/")[-2]
        reason = case["reason"]
        verdict = "agree" if case["status"] == "passed" else "fixed" if re.match(r'input "[^"]*" must be', reason) else \
            "refused" if REFUSED.search(reason) and not reason.startswith("output") else "DIFFER"
        totals[form, verdict] += 1
        if verdict != "agree":
            reasons[verdict, re.sub(r'"[^"]*"|[-+]?\d+(\.\d+)?(e[-+]?\d+)?', "N", reason)[:140]].append((case["name"], reason))
    for (verdict, _), cases in sorted(reasons.items(), key=lambda item: (item[0][0], -len(item[1]))):
        print("%s %4d  %s\n             %s" % (verdict, len(cases), cases[0][1][:260].replace("\n", " "), " ".join(n.split("/", 1)[-1] for n, _ in cases[:10])))
    for form in args.forms.split(","):
        print("%-8s %s" % (form, ", ".join("%s %d" % (v, totals[form, v]) for v in ("agree", "fixed", "refused", "DIFFER"))))
    return 1 if any(v == "DIFFER" for _, v in totals) else 0


if __name__ == "__main__":
    sys.exit(main())
