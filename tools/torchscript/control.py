"""Control flow: what runs, how often and whether at all."""
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchscript.cases import I, T, case, stir


@case(more=lambda: (T(5, 4),))
def if_on_data():
    class M(nn.Module):
        def forward(self, x):
            if bool(x.sum() > 0):
                y = x * 2
            else:
                y = x - 1
            return y
    return M(), (T(3, 4),)


@case()
def if_early_return():
    class M(nn.Module):
        def forward(self, x):
            if bool(x.mean() > 10):
                return x + 1
            if bool(x.mean() < -10):
                return x - 1
            return x * 3
    return M(), (T(3, 4),)


@case(more=lambda: (T(2, 4), torch.tensor(5)))
def while_on_data():
    class M(nn.Module):
        def forward(self, x, n: Tensor):
            i = torch.zeros((), dtype=torch.int64)
            while bool(i < n):
                x = x * 1.5 + 1
                i = i + 1
            return x, i
    return M(), (T(2, 4), torch.tensor(3))


@case(more=lambda: (T(7, 3),))
def for_over_rows():
    class M(nn.Module):
        def forward(self, x):
            total = torch.zeros(x.size(1))
            for i in range(x.size(0)):
                total = torch.tanh(total + x[i])
            return total
    return M(), (T(4, 3),)


@case(more=lambda: (T(6, 3),))
def list_building():
    class M(nn.Module):
        def forward(self, x):
            out: List[Tensor] = []
            h = torch.zeros(3)
            for i in range(x.size(0)):
                h = h * 0.5 + x[i]
                out.append(h)
            return torch.stack(out)
    return M(), (T(4, 3),)


@case()
def list_fixed():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

        def forward(self, x):
            parts: List[Tensor] = []
            for layer in self.layers:
                x = F.relu(layer(x))
                parts.append(x)
            parts.reverse()
            return torch.cat(parts[1:], 1), len(parts)
    return M(), (T(2, 4),)


@case()
def dict_result():
    class M(nn.Module):
        def forward(self, x):
            d: Dict[str, Tensor] = {}
            d["a"] = x + 1
            d["b"] = d["a"] * 2
            if "a" in d:
                d["c"] = d["a"] + d["b"]
            return d
    return M(), (T(2, 3),)


@case()
def dict_input_loop():
    class M(nn.Module):
        def forward(self, x, y):
            d = {"x": x, "y": y}
            total = torch.zeros_like(x)
            for k, v in d.items():
                if k == "x":
                    total = total + v
                else:
                    total = total - v
            return total
    return M(), (T(2, 3), T(2, 3))


@case()
def optional_argument():
    class M(nn.Module):
        def forward(self, x, mask: Optional[Tensor] = None):
            if mask is not None:
                x = x.masked_fill(mask, 0.0)
            return x + 1
    return M(), (T(2, 3), torch.tensor([[True, False, True], [False, False, True]]))


@case()
def optional_absent():
    class M(nn.Module):
        def forward(self, x, mask: Optional[Tensor] = None):
            if mask is not None:
                x = x.masked_fill(mask, 0.0)
            return x + 1
    return M(), (T(2, 3),)


@case()
def optional_state():
    class M(nn.Module):
        def forward(self, x):
            best: Optional[Tensor] = None
            for i in range(3):
                y = x * float(i) + i
                if best is None:
                    best = y
                else:
                    best = torch.maximum(best, y)
            assert best is not None
            return best
    return M(), (T(2, 3),)


@case()
def optional_on_data():
    class M(nn.Module):
        def forward(self, x):
            y: Optional[Tensor] = None
            if bool(x.sum() > 0):
                y = x * 2
            if y is None:
                z = x - 5
            else:
                z = y + 1
            return z
    return M(), (T(2, 3),)


@case()
def tuples():
    class M(nn.Module):
        def helper(self, x) -> Tuple[Tensor, Tuple[Tensor, int]]:
            return x + 1, (x * 2, 3)

        def forward(self, x):
            a, (b, n) = self.helper(x)
            return a, (b * n, a - b)
    return M(), (T(2, 3),)


class Pair(NamedTuple):
    first: Tensor
    second: Tensor


@case()
def named_tuple():
    class M(nn.Module):
        def forward(self, x):
            p = Pair(x + 1, x * 2)
            return Pair(p.second, p.first + p[1])
    return M(), (T(2, 3),)


@case()
def tuple_input():
    class M(nn.Module):
        def forward(self, x: Tuple[Tensor, Tensor], y):
            a, b = x
            return a @ b + y
    return M(), ((T(2, 3), T(3, 4)), T(4))


@case()
def list_input():
    class M(nn.Module):
        def forward(self, xs: List[Tensor]):
            total = xs[0]
            for x in xs[1:]:
                total = total * 0.5 + x
            return total, torch.cat(xs, 0)
    return M(), ([T(2, 3), T(2, 3), T(2, 3)],)


@case()
def number_arguments():
    class M(nn.Module):
        def forward(self, x, n: int, f: float, flag: bool):
            y = x * f + n
            if flag:
                y = -y
            return y
    return M(), (T(2, 3), 3, 0.5, True)


@case()
def strings():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.mode = "tanh"

        def act(self, x, mode: str):
            if mode == "relu":
                return F.relu(x)
            elif mode == "tanh":
                return torch.tanh(x)
            else:
                raise RuntimeError("no " + mode)

        def forward(self, x):
            return self.act(x, self.mode) + self.act(x, "re" + "lu")
    return M(), (T(2, 3),)


@case()
def asserts():
    class M(nn.Module):
        def forward(self, x):
            if x.dim() != 2:
                raise ValueError("two axes")
            if x.size(1) != 3:
                raise ValueError("three columns")
            assert bool(x.abs().max() < 1e6)
            return x.t()
    return M(), (T(2, 3),)


@case(more=lambda: (T(3, 9),))
def break_and_continue():
    class M(nn.Module):
        def forward(self, x):
            total = torch.zeros(3)
            for i in range(6):
                if i == 1:
                    continue
                if i == 4:
                    break
                total = total + x[:, i]
            return total
    return M(), (T(3, 7),)


@case()
def break_on_data():
    class M(nn.Module):
        def forward(self, x):
            n = 0
            for i in range(5):
                if bool(x[i].sum() > 1.0):
                    break
                n += 1
            return x[0] + n
    return M(), (T(5, 3),)


@case()
def nested_loops():
    class M(nn.Module):
        def forward(self, x):
            y = torch.zeros_like(x)
            for i in range(x.size(0)):
                for j in range(x.size(1)):
                    y[i, j] = x[i, j] * (i + 1) - j
            return y
    return M(), (T(3, 4),)


@case()
def in_place_slices():
    class M(nn.Module):
        def forward(self, x):
            y = x.clone()
            y[:, 1:3] += 10
            y[0] = y[0] * 2
            y[:, -1].mul_(3)
            return y
    return M(), (T(3, 4),)


@case()
def in_place_in_branch():
    class M(nn.Module):
        def forward(self, x):
            y = x.clone()
            if bool(x.sum() > 0):
                y[0].add_(1)
            else:
                y[1].sub_(1)
            return y
    return M(), (T(3, 4),)


@case(more=lambda: (T(5, 4),))
def while_norm():
    class M(nn.Module):
        def forward(self, x):
            steps = 0
            while bool(x.norm() > 1.0) and steps < 20:
                x = x * 0.7
                steps += 1
            return x, torch.tensor(steps)
    return M(), (T(3, 4),)


@case()
def integer_arithmetic():
    class M(nn.Module):
        def forward(self, x):
            n = x.size(0) * 2 + 1
            m = n // 3 + n % 4
            k = int(float(n) / 2.0) + min(n, m) + max(2, m) + abs(-3)
            return x.repeat(1, m).narrow(1, 0, 3) + k, x.reshape(-1, x.numel() // x.size(-1))
    return M(), (T(2, 6),)


@case()
def comprehension():
    class M(nn.Module):
        def forward(self, x):
            rows = [x[i] * i for i in range(3)]
            sizes = [r.size(0) for r in rows]
            return torch.stack(rows), torch.tensor(sizes)
    return M(), (T(3, 4),)


@case()
def enumerate_zip():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
            self.b = nn.ModuleDict({"one": nn.Linear(4, 4), "two": nn.Tanh()})

        def forward(self, x):
            for i, layer in enumerate(self.a):
                x = layer(x) + i
            for name, layer in self.b.items():
                x = layer(x)
            return x
    return M(), (T(2, 4),)


@case()
def free_functions():
    def inner(x: Tensor, scale: float = 2.0) -> Tensor:
        return x * scale

    def outer(x: Tensor) -> Tensor:
        return inner(x) + inner(x, 0.5)
    inner = torch.jit.script(inner)

    class M(nn.Module):
        def forward(self, x):
            return inner(x) + inner(x, 0.5)
    return M(), (T(2, 3),)


@torch.jit.script
class Accumulator:
    def __init__(self, start: Tensor):
        self.total = start
        self.count = 0

    def add(self, x: Tensor):
        self.total = self.total + x
        self.count += 1


@case()
def script_class():
    class M(nn.Module):
        def forward(self, x):
            acc = Accumulator(torch.zeros(3))
            for i in range(4):
                acc.add(x[i])
            return acc.total / acc.count
    return M(), (T(4, 3),)


@case(more=lambda: (T(6, 3),))
def script_class_dynamic():
    class M(nn.Module):
        def forward(self, x):
            total = torch.zeros(3)
            count = 0
            for i in range(x.size(0)):
                if bool(x[i].sum() > 0):
                    total = total + x[i]
                    count += 1
            return total / max(count, 1)
    return M(), (T(4, 3),)


@case()
def greedy_decode():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(11, 8)
            self.cell = nn.GRUCell(8, 8)
            self.out = nn.Linear(8, 11)

        def forward(self, h, start):
            tokens: List[Tensor] = []
            token = start
            for i in range(6):
                h = self.cell(self.emb(token), h)
                token = self.out(h).argmax(-1)
                tokens.append(token)
            return torch.stack(tokens, 1), h
    return M(), (T(2, 8), torch.tensor([1, 2]))


@case()
def switch_layers():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))

        def forward(self, x, which: Tensor):
            if bool(which == 1):
                return self.a(x)
            else:
                return self.b(x)
    return M(), (T(2, 4), torch.tensor(1))


@case()
def buffer_mutation():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x):
            self.count += 1
            self.mean.mul_(0.9).add_(x.mean(0) * 0.1)
            return x - self.mean + self.count
    return M(), (T(3, 4),)


@case(more=[lambda: (-T(3, 4).abs(),), lambda: (T(5, 2) * 100,), lambda: (T(1, 1) * 0.01,)])
def elif_chain():
    class M(nn.Module):
        def forward(self, x):
            s = float(x.sum())
            if s > 20:
                return x / 20
            elif s > 1:
                return x + s
            elif s < -1:
                y = x * s
                return y - 1
            return x
    return M(), (T(3, 4).abs(),)


@case(more=[lambda: (-T(4),), lambda: (torch.zeros(6),)])
def return_in_loop():
    class M(nn.Module):
        def forward(self, x):
            for i in range(x.size(0)):
                if bool(x[i] > 0.5):
                    return x[i] * 10
            return x.sum()
    return M(), (I(0.1, 0.2, 0.7, 0.9, 0.1),)


@case(more=[lambda: (I(-1.0, 5.0, 2.0, -1.0, 0.5),), lambda: (I(9.0),)], numbers=True)
def break_continue_dynamic():
    class M(nn.Module):
        def forward(self, x):
            total = 0.0
            seen = 0
            for i in range(x.size(0)):
                v = float(x[i])
                if v < 0:
                    continue
                if total > 3:
                    break
                total += v
                seen += 1
            return total, seen
    return M(), (I(1.0, -2.0, 3.0, 4.0, 5.0),)


@case(more=[lambda: (torch.tensor(97),), lambda: (torch.tensor(1),)], numbers=True)
def collatz():
    class M(nn.Module):
        def forward(self, n: Tensor):
            k = int(n)
            steps = 0
            top = k
            while k != 1 and steps < 200:
                if k % 2 == 0:
                    k = k // 2
                else:
                    k = 3 * k + 1
                if k > top:
                    top = k
                steps += 1
            return steps, top
    return M(), (torch.tensor(27),)


@case(more=[lambda: (T(5, 3), torch.tensor(0)), lambda: (T(4, 3), torch.tensor(2))])
def nested_dynamic():
    class M(nn.Module):
        def forward(self, x, k: Tensor):
            out = torch.zeros_like(x)
            n = int(k)
            for i in range(n):
                j = 0
                while j < x.size(0):
                    if bool(x[j, 0] > 0):
                        if i % 2 == 0:
                            out[j] += x[j]
                        else:
                            out[j] -= x[j] * i
                    j += 1
            return out
    return M(), (T(4, 3), torch.tensor(3))


@case(more=lambda: (-T(3).abs(),))
def nested_functions_return():
    def pick(x: Tensor, limit: float) -> Tuple[Tensor, bool]:
        if bool(x.max() > limit):
            return x.max(), True
        return x.min(), False
    pick = torch.jit.script(pick)

    class M(nn.Module):
        def forward(self, x):
            a, big = pick(x, 0.5)
            if big:
                b, _ = pick(-x, 0.1)
                return a + b
            return a * 3
    return M(), (T(3).abs() + 1,)


@case(more=lambda: (T(3, 4) - 10,))
def nested_if():
    class M(nn.Module):
        def forward(self, x):
            y = x
            flag = bool((x > 0).any())
            if flag:
                if bool((x > 0).all()):
                    y = y + 1
                    z = 1.0
                else:
                    y = y * 2
                    z = 2.0
            else:
                z = 3.0
            if not flag or z > 1.5:
                y = y - z
            return y
    return M(), (T(3, 4),)


@case(more=lambda: (T(2, 5), torch.tensor(2)))
def loop_growing():
    class M(nn.Module):
        def forward(self, x, n: Tensor):
            y = x
            for _ in range(int(n)):
                y = torch.cat([y, x], 0)
            return y
    return M(), (T(2, 5), torch.tensor(4))


@case(more=lambda: (I(3, 1, 4, 1, 5),))
def loop_over_tensor():
    class M(nn.Module):
        def forward(self, x):
            total = torch.zeros((), dtype=torch.int64)
            for v in x:
                total = total * 2 + v
            return total
    return M(), (I(1, 2, 3),)


@case(more=lambda: (T(5, 2), T(5, 2)))
def zip_tensors():
    class M(nn.Module):
        def forward(self, a, b):
            out: List[Tensor] = []
            for i, (p, q) in enumerate(zip(a, b)):
                out.append(p * q + i)
            return torch.stack(out)
    return M(), (T(3, 2), T(3, 2))


@case(more=lambda: (T(9),))
def range_steps():
    class M(nn.Module):
        def forward(self, x):
            a = torch.zeros(())
            for i in range(1, x.size(0), 2):
                a = a + x[i]
            b = torch.zeros(())
            for i in range(x.size(0) - 1, -1, -3):
                b = b * 2 + x[i]
            c = 0
            for i in range(10, 0, -4):
                c += i
            return a, b, x + c
    return M(), (T(7),)


@case(more=lambda: (T(4, 3), torch.tensor(False)))
def conditional_expression():
    class M(nn.Module):
        def forward(self, x, flag: Tensor):
            a = x if bool(flag) else -x
            n = 2 if bool(flag) else 5
            s = "sum" if x.dim() == 2 else "mean"
            b = a.sum() if s == "sum" else a.mean()
            return a * n, b
    return M(), (T(4, 3), torch.tensor(True))


@case(more=lambda: (T(3), torch.tensor(-4)))
def boolean_logic():
    class M(nn.Module):
        def forward(self, x, n: Tensor):
            k = int(n)
            a = k > 0 and bool(x.sum() > -100)
            b = k < 0 or bool(x[0] > 100)
            c = not (a or b)
            d = (k % 2 == 0) != a
            y = x
            if a and not b:
                y = y + 1
            if c or d:
                y = y * 2
            return y
    return M(), (T(3), torch.tensor(3))


@case(more=lambda: (T(6, 2),))
def guarded_index():
    class M(nn.Module):
        def forward(self, x):
            i = 0
            while i < x.size(0) and bool(x[i, 0] < 1e6):
                i += 1
            if i > 0 and bool(x[i - 1, 1] != 0):
                return x[:i]
            return x
    return M(), (T(4, 2),)


@case(more=lambda: (T(3, 3) * 5,))
def newton():
    class M(nn.Module):
        def forward(self, a):
            a = a @ a.t() + torch.eye(a.size(0))
            x = a.t() / (a.abs().sum(0).max() * a.abs().sum(1).max())
            error = 1.0
            k = 0
            while error > 1e-4 and k < 100:
                x = 2 * x - x @ a @ x
                error = (torch.eye(a.size(0)) - a @ x).norm().item()
                k += 1
            return x
    return M(), (T(3, 3),)


@case(more=lambda: (I(1.0, 2.0, 3.0, 4.0), 1))
def raise_with_message():
    class M(nn.Module):
        def forward(self, x, k: int):
            if k >= x.size(0):
                raise IndexError(f"k is {k}, but there are {x.size(0)}")
            if k < 0:
                raise ValueError("negative: " + str(k))
            assert x.dim() == 1, "one axis, not {}".format(x.dim())
            return x[k] + x[: k + 1].sum()
    return M(), (I(1.0, 2.0, 3.0), 2)


@case(more=[lambda: (T(4), 0), lambda: (T(4), 7)])
def number_switch():
    class M(nn.Module):
        def forward(self, x, k: int):
            if k == 0:
                y = x.relu()
            elif k == 1:
                y = x.sigmoid()
            else:
                y = x * k
            return y
    return M(), (T(4), 1)


@case(more=lambda: (T(2, 3), torch.tensor([[False] * 3] * 2)))
def mask_loop():
    class M(nn.Module):
        def forward(self, x, m):
            while bool(m.any()):
                x = torch.where(m, x * 0.5, x)
                m = m & (x.abs() > 0.1)
            return x
    return M(), (T(2, 3), torch.tensor([[True, False, True], [True, True, True]]))


@case(more=lambda: (T(7, 3),))
def two_results_of_a_loop():
    class M(nn.Module):
        def forward(self, x):
            best = x[0]
            at = 0
            for i in range(1, x.size(0)):
                if bool(x[i].sum() > best.sum()):
                    best = x[i]
                    at = i
            return best, torch.tensor(at), x[at]
    return M(), (T(4, 3),)


@case(more=lambda: (T(4, 5, 6), torch.tensor(1)))
def recursive_modules():
    class Leaf(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.fc = nn.Linear(n, n)

        def forward(self, x):
            return torch.relu(self.fc(x))

    class Tree(nn.Module):
        def __init__(self, n, depth):
            super().__init__()
            self.left = Tree(n, depth - 1) if depth > 1 else Leaf(n)
            self.right = Leaf(n)
            self.depth = depth

        def forward(self, x):
            if bool(x.mean() > 0.3 * self.depth):
                return self.left(x) + self.right(x)
            return self.left(x) - self.right(x)

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.tree = Tree(6, 3)

        def forward(self, x, n: Tensor):
            for _ in range(int(n)):
                x = self.tree(x)
            return x
    return M(), (T(2, 3, 6), torch.tensor(2))


@case(more=lambda: (T(1, 8), torch.tensor([3])))
def beam_search():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(13, 8)
            self.cell = nn.GRUCell(8, 8)
            self.out = nn.Linear(8, 13)
            self.beam = 3

        def forward(self, h, start):
            scores = torch.zeros(1)
            tokens = start.unsqueeze(0)
            for step in range(5):
                h = self.cell(self.emb(tokens[:, -1]), h)
                logp = self.out(h).log_softmax(-1) + scores.unsqueeze(1)
                top, at = logp.flatten().topk(self.beam)
                where = torch.div(at, 13, rounding_mode="floor")
                scores = top
                tokens = torch.cat([tokens[where], (at % 13).unsqueeze(1)], 1)
                h = h[where]
                if bool((tokens[:, -1] == 0).all()):
                    break
            best = scores.argmax()
            return tokens[best], scores
    return M(), (T(1, 8), torch.tensor([1]))


@case(more=lambda: (T(2, 6), torch.tensor([2, 1]), torch.tensor(7)))
def greedy_until_end():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(5, 6)
            self.cell = nn.LSTMCell(6, 6)
            self.out = nn.Linear(6, 5)

        def forward(self, h, token, limit: Tensor):
            c = torch.zeros_like(h)
            done = torch.zeros(h.size(0), dtype=torch.bool)
            result = token.unsqueeze(1)
            steps = 0
            while not bool(done.all()) and steps < int(limit):
                h, c = self.cell(self.emb(token), (h, c))
                token = self.out(h).argmax(-1).masked_fill(done, 0)
                done = done | (token == 4)
                result = torch.cat([result, token.unsqueeze(1)], 1)
                steps += 1
            return result, h
    return M(), (T(2, 6), torch.tensor([1, 3]), torch.tensor(4))


@case(more=[lambda: (-T(2, 3, 4).abs(),), lambda: (T(4, 3, 1).abs(),)])
def axes_in_place_in_branch():
    class M(nn.Module):
        def forward(self, x):
            y, z = x.clone(), x * 2
            if bool(x.sum() > 0):
                y.unsqueeze_(1)
                y.add_(1)
                y.squeeze_(1)
            n = torch.zeros((), dtype=torch.int64)
            while bool(n < 3):
                z.unsqueeze_(0)
                z.mul_(0.5)
                z.squeeze_(0)
                n += 1
            return y, z
    return M(), (T(2, 3, 4).abs(),)
