"""Measures Tombolo beside ONNX Runtime on language models as their own tools write them: the model builder of onnxruntime-genai, and optimum.

    python bench/decoders.py make FOLDER [--only REGEX]
    python bench/decoders.py measure TOMBOLO FOLDER [--only REGEX] [--threads 1] [--out FILE] [--onnxruntime LIB]

`make` needs torch, transformers, onnxruntime and onnxruntime-genai or optimum-onnx (which want transformers of different
versions: what cannot be imported is left out). Networks have four layers, 384 wide, random weights with a seed. Each is measured on a prompt
of 128 tokens, on one token behind 128 and, from the builder, on 16 behind 64; encoders on 128.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import beside

WIDE = {"hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6, "intermediate_size": 1536}
TOKENS = {"vocab_size": 8000, "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 1}
DECODER = {**WIDE, **TOKENS, "num_key_value_heads": 2, "head_dim": 64, "max_position_embeddings": 2048}
GPT = {"n_embd": 384, "n_layer": 4, "n_head": 6, "vocab_size": 8000}
SEQ2SEQ = {**TOKENS, "d_model": 384, "encoder_layers": 4, "decoder_layers": 4, "encoder_attention_heads": 6, "decoder_attention_heads": 6, "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536, "decoder_start_token_id": 1}
T5 = {"d_model": 384, "num_layers": 4, "num_heads": 6, "d_ff": 1536, "vocab_size": 8000, "decoder_start_token_id": 0}
SIZES = {
    "GPT2LMHeadModel": GPT, "GPTBigCodeForCausalLM": GPT, "GPTJForCausalLM": {**GPT, "rotary_dim": 32}, "CodeGenForCausalLM": {"n_embd": 512, "n_layer": 4, "n_head": 8, "rotary_dim": 32, "vocab_size": 8000},
    "GPTNeoForCausalLM": {"hidden_size": 384, "num_layers": 4, "num_heads": 6, "attention_types": [[["global", "local"], 2]], "vocab_size": 8000}, "GPTNeoXForCausalLM": {**WIDE, "vocab_size": 8000},
    "OPTForCausalLM": {"hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6, "ffn_dim": 1536, "word_embed_proj_dim": 384, "vocab_size": 8000}, "BloomForCausalLM": {"hidden_size": 384, "n_layer": 4, "n_head": 6, "vocab_size": 8000},
    "FalconForCausalLM": {"hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6, "vocab_size": 8000}, "MptForCausalLM": {"d_model": 384, "n_layers": 4, "n_heads": 6, "vocab_size": 8000},
    "PhiForCausalLM": {**DECODER, "num_key_value_heads": 6}, "OlmoForCausalLM": {**DECODER, "num_key_value_heads": 6}, "GptOssForCausalLM": {**DECODER, "num_local_experts": 4, "num_experts_per_tok": 2}, "T5ForConditionalGeneration": T5, "LongT5ForConditionalGeneration": T5,
}
BUILDER = "LlamaForCausalLM Qwen2ForCausalLM Qwen3ForCausalLM MistralForCausalLM PhiForCausalLM GemmaForCausalLM Gemma2ForCausalLM GraniteForCausalLM OlmoForCausalLM SmolLM3ForCausalLM NemotronForCausalLM GptOssForCausalLM Ernie4_5ForCausalLM".split()
PRECISIONS = "int4 fp32 fp16".split()
OPTIONS = "int4_is_symmetric=false int4_block_size=128 use_qdq=true int4_algo_config=k_quant_mixed int4_algo_config=rtn_last exclude_lm_head=true int8_lm_head=true".split()
OPTIMUM = {
    "text-generation-with-past": "GPT2LMHeadModel LlamaForCausalLM MistralForCausalLM Qwen2ForCausalLM Qwen3ForCausalLM PhiForCausalLM Phi3ForCausalLM GemmaForCausalLM GPTBigCodeForCausalLM GPTJForCausalLM CodeGenForCausalLM GPTNeoForCausalLM GPTNeoXForCausalLM OPTForCausalLM BloomForCausalLM FalconForCausalLM MptForCausalLM OlmoForCausalLM GraniteForCausalLM StableLmForCausalLM".split(),
    "text2text-generation-with-past": "BartForConditionalGeneration T5ForConditionalGeneration MarianMTModel MBartForConditionalGeneration M2M100ForConditionalGeneration BlenderbotSmallForConditionalGeneration LongT5ForConditionalGeneration PegasusForConditionalGeneration".split(),
    "automatic-speech-recognition-with-past": ["WhisperForConditionalGeneration", "Speech2TextForConditionalGeneration"],
}


def network(name):
    import torch
    import transformers
    torch.manual_seed(0)
    made = getattr(transformers, name)
    sizes = SIZES.get(name, DECODER if "CausalLM" in name else SEQ2SEQ)
    return made(made.config_class(**sizes)).eval()


def build(name, precision, option, folder):
    """By onnxruntime-genai, from a checkpoint and a tokenizer made here."""
    import transformers
    from tokenizers import Tokenizer, models
    with tempfile.TemporaryDirectory() as checkpoint:
        network(name).save_pretrained(checkpoint)
        words = Tokenizer(models.WordLevel({"<pad>": 0, "</s>": 1, **{str(i): i for i in range(2, 8000)}}, unk_token="<pad>"))
        transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="</s>", bos_token="</s>").save_pretrained(checkpoint)
        command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-m", name, "-i", checkpoint, "-o", folder, "-p", precision, "-e", "cuda" if precision == "fp16" else "cpu", "-c", os.path.join(checkpoint, "cache")]
        subprocess.run(command + (["--extra_options", option] if option else []), check=True, capture_output=True)


def export(name, task, folder):
    from optimum.exporters.onnx import onnx_export_from_model
    onnx_export_from_model(network(name), folder, task=task, do_validation=False)


def make(folder, only):
    wanted = {}
    try:
        import onnxruntime_genai
        wanted = {f"builder.{n}.{p}": (build, n, p, "") for n in BUILDER for p in PRECISIONS}
        wanted |= {f"builder.LlamaForCausalLM.int4.{o}": (build, "LlamaForCausalLM", "int4", o) for o in OPTIONS}
    except ImportError:
        pass
    try:
        import optimum.exporters.onnx
        wanted |= {f"optimum.{n}": (export, n, task) for task, names in OPTIMUM.items() for n in names}
    except ImportError:
        pass
    os.makedirs(folder, exist_ok=True)
    for name, (write, *arguments) in wanted.items():
        target = os.path.join(folder, name)
        if not re.search(only, name) or os.path.exists(target):
            continue
        try:
            with tempfile.TemporaryDirectory(dir=folder) as temporary:
                write(*arguments, temporary)
                shutil.copytree(temporary, target, ignore=shutil.ignore_patterns("*.json"))
            print(name, flush=True)
        except Exception as why:
            print(f"{name}: {type(why).__name__} {str(why)[:150]}", flush=True)


def feed_of(model, rows, past):
    """Random inputs for so many tokens behind others."""
    import onnx
    rng = np.random.default_rng(0)
    windows = {}  # caches that hold a window, whatever came before
    for node in model.graph.node:
        given = {a.name: a.i for a in node.attribute}
        if node.op_type == "GroupQueryAttention" and given.get("sliding_window_cache"):
            windows.update(dict.fromkeys(node.input[3:5], given["local_window_size"]))
    feed = {}
    for i in model.graph.input:
        def length(d):
            if d.dim_value:
                return d.dim_value
            name = d.dim_param
            if "batch" in name and "+" not in name:
                return 1
            if "encoder" in name:
                return 64
            if "total" in name or "+" in name:
                return rows + past
            if "past" in name:
                return past
            if "feature_size" in name:
                return 80
            return 64 if "kv_cache_dim" in name else rows
        shape = [length(d) for d in i.type.tensor_type.shape.dim]
        if i.name in windows:
            shape[2] = windows[i.name]
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type))
        if "mask" in i.name:
            feed[i.name] = np.ones(shape, dtype)
        elif "position" in i.name:
            feed[i.name] = np.broadcast_to(np.arange(past, past + rows), shape).astype(dtype)
        elif dtype.kind == "b":
            feed[i.name] = np.full(shape, past > 0)
        elif dtype.kind in "iu":
            feed[i.name] = rng.integers(2, 8000, shape).astype(dtype)
        else:
            feed[i.name] = (rng.standard_normal(shape) * 0.5).astype(dtype)
    return feed


def cases(folder, only):
    import onnx
    for name, path in beside.models(folder, only, "*.onnx"):
        model = onnx.load(path, load_external_data=False)
        has_past = any("past" in i.name for i in model.graph.input)
        tokens = [(128, 0)] if not path.endswith("with_past_model.onnx") else []
        tokens += [(1, 128)] if has_past else []
        tokens += [(16, 64)] if name.startswith("builder") else []
        for rows, past in tokens:
            yield (name, f"{rows} behind {past}" if past else rows), path, feed_of(model, rows, past)


if __name__ == "__main__":
    beside.main(__doc__, ("model", "tokens"), make, cases)
