"""Lists, dicts, tuples, optionals."""
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchscript.cases import I, T, case


@case(more=lambda: (T(5, 4),))
def list_methods():
    class M(nn.Module):
        def forward(self, x):
            a = [x, x + 1]
            a.append(x * 2)
            a.insert(1, x * 3)
            a.extend([x - 1, x - 2])
            last = a.pop()
            first = a.pop(0)
            a.reverse()
            a[0] = last
            a[-1] += 1
            b = a[:2] + a[2:] + [first] * 2
            del b[0]
            c = a.copy()
            c.clear()
            n = len(b) + len(c)
            return torch.cat(b[::2], 0) * n, b[-2]
    return M(), (T(2, 4),)


@case()
def number_lists():
    class M(nn.Module):
        def forward(self, x):
            a = [3, 1, 2]
            a.sort()
            b = sorted([2.5, -1.0, 7.0])
            c = [i * i for i in a]
            d = [i for i in range(10, 0, -3)]
            e = a + c
            n = sum(c) + max(e) + min(e) + a.index(2) + e.count(1) + len(d)
            if 4 in c and 5 not in c and a == [1, 2, 3] and a != c:
                n += 100
            z = list(zip(a, c))
            for i, (p, q) in enumerate(z):
                n += i * p - q
            w = [v * 2 for v in b]
            return x + n, torch.tensor(d), torch.tensor(b), x * w[0], torch.tensor([[1, 2], [3, 4]]), torch.tensor([any([False, True]), all([True, False])])
    return M(), (T(2, 3),)


@case(more=lambda: (T(5, 2), T(3, 2)))
def list_of_unknown_length():
    class M(nn.Module):
        def forward(self, x, y):
            parts: List[Tensor] = []
            for i in range(x.size(0)):
                if bool(x[i].sum() > 0):
                    parts.append(x[i])
            parts.append(y[0])
            n = len(parts)
            return torch.stack(parts).sum(0), torch.tensor(n), parts[0], parts[-1]
    return M(), (T(4, 2), T(1, 2))


@case(more=lambda: (I(1, 2, 3, 4),))
def integer_list_dynamic():
    class M(nn.Module):
        def forward(self, x):
            a: List[int] = []
            for i in range(x.size(0)):
                v = int(x[i])
                if v % 2 == 0:
                    a.append(v * v)
            b: List[float] = []
            for v in a:
                b.append(v / 2)
            return torch.tensor(a), torch.tensor(b)
    return M(), (I(5, 6, 7, 8, 10),)


@case(more=lambda: (T(4, 3), torch.tensor(2)))
def list_index_dynamic():
    class M(nn.Module):
        def forward(self, x, k: Tensor):
            parts = [x, x * 2, x.abs(), x - 1]
            i = int(k)
            table = [10, 20, 30, 40]
            y = parts[i] + table[i]
            parts[0] = y
            return y, parts[0]
    return M(), (T(2, 3), torch.tensor(1))


@case()
def dict_methods():
    class M(nn.Module):
        def forward(self, x):
            d = {"a": x, "b": x * 2}
            d["c"] = d["a"] + d["b"]
            e = d.copy()
            e.update({"a": x - 1})
            v = e.pop("b")
            total = torch.zeros_like(x)
            for k in d.keys():
                total = total + d[k]
            for t in e.values():
                total = total * 0.5 + t
            for k, t in e.items():
                if k != "a":
                    total = total + t * len(k)
            w = d.get("zz", x)
            n = len(d)
            if "c" in e:
                del e["c"]
            f = {k: t * 2 for k, t in d.items()}
            g = d.setdefault("q", x * 7)
            return total, v, w, f["c"] + n + len(e), g, d["q"]
    return M(), (T(2, 3),)


@case()
def dict_of_numbers():
    class M(nn.Module):
        def forward(self, x):
            d: Dict[int, float] = {1: 0.5, 2: 1.5}
            d[3] = d[1] + d[2]
            total = 0.0
            for k, v in d.items():
                total += k * v
            names = {"x": 1, "y": 2}
            ordered = list(names.keys())
            if ordered[0] == "x":
                total += names["y"]
            return x + total
    return M(), (T(2, 3),)


@case(more=lambda: (T(4, 3), T(2, 3)))
def dict_input():
    class M(nn.Module):
        def forward(self, x, y):
            feats: Dict[str, Tensor] = {"p2": x, "p3": y}
            out: Dict[str, Tensor] = {}
            for name, v in feats.items():
                out[name] = v.relu().mean(0)
            out["pool"] = out["p2"] + out["p3"]
            return out
    return M(), (T(2, 3), T(5, 3))


class Output(NamedTuple):
    logits: Tensor
    hidden: Optional[Tensor]
    count: int


@case(more=lambda: (T(5, 3),))
def named_tuple_fields():
    class M(nn.Module):
        def inner(self, x, keep: bool) -> Output:
            return Output(logits=x * 2, hidden=x if keep else None, count=x.size(0))

        def forward(self, x):
            a = self.inner(x, True)
            b = self.inner(x, False)
            h = a.hidden
            y = a.logits
            if h is not None:
                y = y + h
            if b.hidden is None:
                y = y - 1
            return y * b.count, a[0]
    return M(), (T(2, 3),)


@case(more=[lambda: (-T(2, 3).abs(),), lambda: (T(2, 3) * 100,)])
def optional_in_loop():
    class M(nn.Module):
        def forward(self, x):
            best: Optional[Tensor] = None
            for i in range(x.size(0)):
                row = x[i]
                if bool(row.sum() > 0):
                    if best is None:
                        best = row
                    else:
                        best = best + row
            if best is None:
                return torch.full((3,), -1.0)
            return best
    return M(), (T(4, 3).abs(),)


@case(more=lambda: (-T(3).abs(),))
def optional_number():
    class M(nn.Module):
        def find(self, x) -> Optional[int]:
            for i in range(x.size(0)):
                if bool(x[i] > 1):
                    return i
            return None

        def forward(self, x):
            k = self.find(x)
            if k is not None:
                return x * k
            return x - 1
    return M(), (I(0.0, 0.5, 2.0, 3.0),)


@case(more=lambda: (T(2, 4, 4) - 5,))
def optional_to_operator():
    class M(nn.Module):
        def forward(self, x):
            mask: Optional[Tensor] = None
            w: Optional[Tensor] = None
            if bool(x.mean() > 0):
                mask = torch.ones(4, 4, dtype=torch.bool).tril()
                w = torch.ones(4) * 2
            y = F.scaled_dot_product_attention(x, x, x, attn_mask=mask)
            return F.layer_norm(y, [4], weight=w)
    return M(), (T(2, 4, 4) + 5,)


@case(more=lambda: (T(2, 3), T(3)))
def optional_chain():
    class M(nn.Module):
        def forward(self, x, a: Optional[Tensor] = None, b: Optional[Tensor] = None, n: Optional[int] = None):
            y = x
            if a is not None and b is not None:
                y = y + a * b
            elif a is not None:
                y = y + a
            k = 3 if n is None else n
            c = a if a is not None else x
            return y * k, c
    return M(), (T(2, 3), T(3))


@case(more=lambda: (T(3, 4),))
def tuples_in_loop():
    class M(nn.Module):
        def step(self, x, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
            h, c = state
            c = torch.sigmoid(x) * c + torch.tanh(x)
            h = torch.tanh(c)
            return h * 2, (h, c)

        def forward(self, x):
            state = (torch.zeros(4), torch.zeros(4))
            outs: List[Tensor] = []
            for i in range(x.size(0)):
                y, state = self.step(x[i], state)
                outs.append(y)
            return torch.stack(outs), state
    return M(), (T(5, 4),)


@case(more=lambda: (T(3, 4),))
def list_of_tuples():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.ModuleList([nn.LSTMCell(4, 4), nn.LSTMCell(4, 4)])

        def forward(self, x):
            states: List[Tuple[Tensor, Tensor]] = []
            for _ in self.cells:
                z = torch.zeros(1, 4)
                states.append((z, z))
            for t in range(3):
                inp = x[t].unsqueeze(0)
                new: List[Tuple[Tensor, Tensor]] = []
                for i, one in enumerate(self.cells):
                    h, c = one(inp, states[i])
                    inp = h
                    new.append((h, c))
                states = new
            return states[0][0], states[1][1]
    return M(), (T(5, 4),)


@case(more=lambda: (T(6, 4),))
def list_of_states_dynamic():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.ModuleList([nn.GRUCell(4, 4), nn.GRUCell(4, 4)])

        def forward(self, x):
            states = [torch.zeros(1, 4), torch.zeros(1, 4)]
            for t in range(x.size(0)):
                inp = x[t].unsqueeze(0)
                i = 0
                for cell in self.cells:
                    states[i] = cell(inp, states[i])
                    inp = states[i]
                    i += 1
            return torch.cat(states)
    return M(), (T(5, 4),)


@case(more=lambda: (T(6, 4),))
def nested_lists():
    class M(nn.Module):
        def forward(self, x):
            grid: List[List[Tensor]] = []
            for i in range(2):
                row: List[Tensor] = []
                for j in range(3):
                    row.append(x[:, j] * (i + 1))
                grid.append(row)
            grid[1][2] = grid[0][0] + grid[1][1]
            flat = grid[0] + [t for t in grid[1]]
            return torch.stack(flat, 1), torch.stack(grid[1])
    return M(), (T(3, 4),)


@case(more=lambda: (T(4, 4),))
def dict_of_lists():
    class M(nn.Module):
        def forward(self, x):
            d: Dict[str, List[Tensor]] = {"a": [], "b": []}
            for i in range(4):
                key = "a" if i % 2 == 0 else "b"
                d[key].append(x[i])
            return torch.stack(d["a"]), torch.stack(d["b"])
    return M(), (T(6, 4),)


@case()
def chunks_and_splits():
    class M(nn.Module):
        def forward(self, x):
            a, b = x.chunk(2, 0)
            parts = x.split(1, dim=0)
            total = torch.zeros_like(parts[0])
            for i, p in enumerate(parts):
                total = total + p * i
            u = x.unbind(1)
            v = torch.split(x, [1, 2], 1)
            m = torch.meshgrid([torch.arange(2), torch.arange(3)], indexing="ij") if hasattr(self, "q") else u
            c = torch.tensor_split(x, 2, dim=0)
            return a - b, total, u[2] + u[0], v[1], c[0]
    return M(), (T(6, 3, 2),)


@case(more=lambda: ([T(2, 3), T(4, 3)],))
def list_of_inputs():
    class M(nn.Module):
        def forward(self, xs: List[Tensor]) -> List[Tensor]:
            out: List[Tensor] = []
            sizes = [x.shape[0] for x in xs]
            top = max(sizes)
            for x in xs:
                out.append(F.pad(x, [0, 0, 0, top - x.shape[0]]))
            return [torch.stack(out), torch.tensor(sizes)]
    return M(), ([T(5, 3), T(1, 3)],)


@case(more=lambda: (T(3, 2), (T(2), [T(3, 2), T(3, 2)])))
def nested_arguments():
    class M(nn.Module):
        def forward(self, x, more: Tuple[Tensor, List[Tensor]]):
            a, bs = more
            return {"sum": x + a, "all": torch.stack(bs)}
    return M(), (T(4, 2), (T(2), [T(4, 2), T(4, 2)]))


@case(more=lambda: (T(3, 4),))
def aliased_lists():
    class M(nn.Module):
        def fill(self, into: List[Tensor], x):
            into.append(x)
            into.append(x * 2)

        def forward(self, x):
            a: List[Tensor] = []
            b = a
            self.fill(b, x)
            if bool(x.sum() > 0):
                a[0] = x * 10
            c = [a, b]
            c[0][1] = x - 3
            return b[0], b[1], len(a)
    return M(), (T(3, 4),)


@case(more=lambda: (I(2, 0, 1, 1),))
def shapes_as_lists():
    class M(nn.Module):
        def forward(self, x):
            y = torch.zeros(x.shape[0], 3)
            shape = list(y.shape)
            shape.append(1)
            z = y.reshape(shape)
            s = y.shape[:1] + [3, 1]
            n = 1
            for d in y.shape:
                n *= d
            w = y.new_zeros(n)
            return z.expand(s[0], 3, 2) + x[:, None, None], w, torch.tensor(y.shape), y.view([-1] + y.shape[1:])
    return M(), (I(1, 2, 3),)
