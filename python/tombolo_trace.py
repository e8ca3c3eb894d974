"""Writes a traced PyTorch or JAX function for Tombolo: NAME.trace.json and NAME.trace.safetensors (docs/formats/trace.md).

    tombolo_trace.torch_module(module.eval(), (x,), "net")
    tombolo_trace.jax_function(function, (x, y), "net", params=params)  # function(params, x, y)

then `tombolo convert net.trace.json net.onnx`. Branches on values are fixed as this one run took them."""
import json
import numpy as np


class Trace:
    def __init__(self, producer):
        self.doc = {"format": "tombolo-trace", "version": 1, "producer": producer, "inputs": [], "nodes": [], "outputs": []}
        self.weights, self.count = {}, 0

    def op(self, op, *args, outputs=1, **kwargs):
        names = [f"v{self.count + i}" for i in range(outputs)]
        self.count += outputs
        self.doc["nodes"].append({"op": op, "args": list(args), "kwargs": kwargs, "outputs": names})
        return {"t": names[0]} if outputs == 1 else [{"t": n} for n in names]

    def input(self, name, dtype, shape):
        self.doc["inputs"].append({"name": name, "dtype": str(dtype), "shape": list(shape)})
        return {"t": name}

    def weight(self, array, name=None, dtype=None):
        name = name or f"constant_{len(self.weights)}"
        self.weights[name] = (dtype or str(np.asarray(array).dtype), np.asarray(array))
        return {"t": name}

    def save(self, out):
        header, blobs, at, kinds = {}, [], 0, {"float": "F", "int": "I", "uint": "U", "bfloat": "BF", "bool": "BOOL"}
        for name, (dtype, array) in self.weights.items():
            kind, data = dtype.rstrip("0123456789"), np.ascontiguousarray(array).tobytes()
            header[name] = {"dtype": kinds[kind] + dtype[len(kind):], "shape": list(array.shape), "data_offsets": [at, at + len(data)]}
            blobs, at = blobs + [data], at + len(data)
        text = json.dumps(header).encode()
        with open(out + ".trace.safetensors", "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text + b"".join(blobs))
        with open(out + ".trace.json", "w") as file:
            json.dump(self.doc, file)


def torch_module(module, args, out, kwargs=None):
    import torch
    from torch.utils import _pytree as tree
    from torch.utils._python_dispatch import TorchDispatchMode
    trace, known, kept = Trace("torch " + torch.__version__), {}, []  # kept: so that no other tensor gets its identity
    state = {id(t): n for n, t in [*module.named_buffers(remove_duplicate=False), *module.named_parameters(remove_duplicate=False)]}

    def arg(x):
        if isinstance(x, torch.Tensor):
            if id(x) not in known:
                raw = x.detach().resolve_conj().resolve_neg().cpu().clone(memory_format=torch.contiguous_format)
                known[id(x)] = trace.weight((raw.view(torch.uint16) if raw.dtype == torch.bfloat16 else raw).numpy(), state.get(id(x)), str(x.dtype)[6:])
                kept.append(x)
            return known[id(x)]
        if isinstance(x, (list, tuple)):
            return [arg(y) for y in x]
        if isinstance(x, float) and not np.isfinite(x):
            return {"float": str(x)}
        return {"dtype": str(x)[6:]} if isinstance(x, torch.dtype) else x if isinstance(x, (bool, int, float, str)) else None

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            given, named = [arg(x) for x in args], {k: arg(v) for k, v in (kwargs or {}).items()}
            results, schema = function(*args, **(kwargs or {})), function._schema
            flat = list(results) if isinstance(results, (list, tuple)) else [results]
            if any(isinstance(y, torch.Tensor) for y in flat):
                made = trace.op(schema.name + ("." + schema.overload_name if schema.overload_name else ""), *given, outputs=len(flat), **named)
                known.update({id(y): name for y, name in zip(flat, made if len(flat) > 1 else [made])})
                kept.extend(flat)
            return results
    for i, x in enumerate(x for x in tree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)):
        known[id(x)] = trace.input(f"input_{i}", str(x.dtype)[6:], x.shape)
        kept.append(x)
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    with torch.no_grad(), Recorder():
        results = module(*args, **(kwargs or {}))
    torch.backends.mha.set_fastpath_enabled(fast)
    trace.doc["outputs"] = [arg(y)["t"] for y in tree.tree_leaves(results) if isinstance(y, torch.Tensor)]
    trace.save(out)


JAX = {"logistic": "sigmoid", "is_finite": "isfinite", "max": "maximum", "min": "minimum", "not": "bitwise_not", "copy": "clone", "pow": "pow.Tensor_Tensor",
       "stop_gradient": "clone", "and": "bitwise_and.Tensor", "or": "bitwise_or.Tensor", "rem": "fmod.Tensor", "add_any": "add.Tensor",
       "reduce_sum": "sum.dim_IntList", "reduce_max": "amax", "reduce_min": "amin", "select_n": "where.self", "transpose": "permute", "rev": "flip",
       "concatenate": "cat", "reshape": "reshape", "squeeze": "reshape", "expand_dims": "reshape", "integer_pow": "pow.Tensor_Scalar", "convert_element_type": "to.dtype",
       **{k: k for k in "neg exp log log1p expm1 tanh sin cos tan sqrt rsqrt abs sign floor ceil erf square atan2 cumsum".split()},
       **{k: k + ".Tensor" for k in "add sub mul eq ne lt le gt ge".split()}}


def jax_function(function, args, out, params=None):
    import jax
    trace, weights = Trace("jax " + jax.__version__), len(jax.tree_util.tree_leaves(params))
    flat, spec = jax.tree_util.tree_flatten(args if params is None else (params, *args))
    closed = jax.make_jaxpr(lambda *a: function(*jax.tree_util.tree_unflatten(spec, a)))(*flat)
    call, constants = lambda name, *a: trace.op("aten::" + name, *a), lambda closed: [trace.weight(c) for c in getattr(closed, "consts", ())]

    def lower(kind, p, x, avals, shape):
        if kind == "div":
            return call(*(("div.Tensor", *x) if avals[0].dtype.kind == "f" else ("div.Tensor_mode", *x, "trunc")))
        if kind in JAX:
            more = [list(v) for k, v in p.items() if k in ("axes", "permutation", "dimensions") and kind[:3] in ("red", "tra", "rev")] + [p[k] for k in ("axis", "y") if k in p]
            more += [{"dtype": str(np.dtype(p["new_dtype"]))}] if kind == "convert_element_type" else [shape] if JAX[kind] == "reshape" else []
            x = {"concatenate": lambda: [x, p["dimension"]], "select_n": lambda: [x[0], x[2], x[1]]}.get(kind, lambda: x)()
            y = call(JAX[kind], *x, *more)
            return call("to.dtype", y, {"dtype": str(avals[0].dtype)}) if kind in ("reduce_sum", "cumsum") else y
        if kind == "broadcast_in_dim":
            at = dict(zip(p["broadcast_dimensions"], avals[0].shape))
            return call("expand", call("reshape", x[0], [at.get(i, 1) for i in range(len(shape))]), shape)
        if kind == "slice":
            for axis, (a, b) in enumerate(zip(p["start_indices"], p["limit_indices"])):
                x = [call("slice.Tensor", x[0], axis, a, b, (p["strides"] or [1] * len(shape))[axis])]
            return x[0]
        if kind == "dot_general":
            ((ca, cb), (ba, bb)), (a, b) = p["dimension_numbers"], [[chr(c + i) for i in range(len(v.shape))] for c, v in zip((97, 110), avals)]
            for i, j in [*zip(ca, cb), *zip(ba, bb)]:
                b[j] = a[i]
            rest = [c for i, c in enumerate(a) if i not in (*ca, *ba)] + [c for j, c in enumerate(b) if j not in (*cb, *bb)]
            return call("einsum", f"{''.join(a)},{''.join(b)}->{''.join([a[i] for i in ba] + rest)}", x)
        if kind == "conv_general_dilated" and set(p["lhs_dilation"]) == {1} and all(a == b for a, b in p["padding"]):
            d, pads = p["dimension_numbers"], [a for a, _ in p["padding"]]
            x = [call("permute", v, list(map(int, order))) for v, order in zip(x, (d.lhs_spec, d.rhs_spec))]
            y = call("convolution", *x, None, list(p["window_strides"]), pads, list(p["rhs_dilation"]), False, [0] * len(pads), p["feature_group_count"])
            return call("permute", y, np.argsort(d.out_spec).tolist())
        raise NotImplementedError(f"{kind} has no counterpart here")

    def walk(jaxpr, consts, given):
        known = dict(zip(jaxpr.constvars, consts)) | dict(zip(jaxpr.invars, given))
        read = lambda v: trace.weight(v.val) if hasattr(v, "val") else known[v]
        for eqn in jaxpr.eqns:
            x, inner = [read(v) for v in eqn.invars], eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
            y = (walk(getattr(inner, "jaxpr", inner), constants(inner), x) if inner is not None and hasattr(getattr(inner, "jaxpr", inner), "eqns") else
                 lower(eqn.primitive.name, eqn.params, x, [v.aval for v in eqn.invars], list(eqn.outvars[0].aval.shape)))
            known.update(zip(eqn.outvars, y if isinstance(y, list) else [y]))
        return [read(v) for v in jaxpr.outvars]
    given = [trace.weight(v, f"param_{i}") if i < weights else trace.input(f"input_{i - weights}", np.asarray(v).dtype, np.shape(v)) for i, v in enumerate(flat)]
    trace.doc["outputs"] = [y["t"] for y in walk(closed.jaxpr, constants(closed), given)]
    trace.save(out)
