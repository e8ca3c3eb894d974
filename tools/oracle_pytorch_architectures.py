"""More architectures of transformers, tiny, with random weights, for tools/sweep_pytorch.py --source architectures: one row each."""
import torch
from oracle_pytorch_networks import stir
from torch import nn
from torch.export import Dim

SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
TEXT = dict(SMALL, vocab_size=99, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GROUPED = dict(TEXT, num_key_value_heads=2, head_dim=8)
EXPERTS = dict(GROUPED, num_experts=4, num_local_experts=4, num_experts_per_tok=2, moe_intermediate_size=24)
TWO = dict(vocab_size=99, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
           decoder_ffn_dim=48, max_position_embeddings=64, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2)
GPT = dict(vocab_size=99, n_positions=64, n_embd=32, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2)
PATCHES = dict(SMALL, image_size=32, patch_size=8)
SOUND = dict(SMALL, conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2, vocab_size=32)
FOUR = dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1])

# name of the configuration: (model, options)
DECODERS = {
    "Cohere2": ("ForCausalLM", dict(GROUPED, sliding_window=4)), "Nemotron": ("ForCausalLM", GROUPED), "Starcoder2": ("ForCausalLM", dict(GROUPED, sliding_window=4)),
    "Glm": ("ForCausalLM", GROUPED), "Glm4": ("ForCausalLM", GROUPED), "Olmoe": ("ForCausalLM", EXPERTS), "Helium": ("ForCausalLM", GROUPED),
    "Exaone4": ("ForCausalLM", dict(GROUPED, sliding_window=4)), "Ernie4_5": ("ForCausalLM", GROUPED), "HunYuanDenseV1": ("ForCausalLM", GROUPED),
    "DeepseekV2": ("ForCausalLM", dict(EXPERTS, num_key_value_heads=4, kv_lora_rank=16, q_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=8, n_routed_experts=4, n_shared_experts=1, first_k_dense_replace=1, head_dim=8)),
    "DeepseekV3": ("ForCausalLM", dict(EXPERTS, num_key_value_heads=4, kv_lora_rank=16, q_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=8, n_routed_experts=4, n_shared_experts=1, first_k_dense_replace=1, n_group=2, topk_group=1)),
    "Persimmon": ("ForCausalLM", TEXT), "Mpt": ("ForCausalLM", dict(d_model=32, n_heads=4, n_layers=2, max_seq_len=64, vocab_size=99)), "Qwen3Moe": ("ForCausalLM", dict(EXPERTS, decoder_sparse_step=1)),
    "GraniteMoe": ("ForCausalLM", EXPERTS), "Phimoe": ("ForCausalLM", EXPERTS), "GptOss": ("ForCausalLM", dict(EXPERTS, sliding_window=4)), "JetMoe": ("ForCausalLM", dict(EXPERTS, kv_channels=8, num_key_value_heads=4, num_attention_heads=4)),
    "Lfm2": ("ForCausalLM", dict(GROUPED, full_attn_idxs=[1])), "BitNet": ("ForCausalLM", GROUPED), "BioGpt": ("ForCausalLM", TEXT), "XGLM": ("ForCausalLM", dict(TEXT, d_model=32, ffn_dim=48, num_layers=2, attention_heads=4)),
    "CTRL": ("LMHeadModel", dict(GPT, dff=48)), "GPTNeo": ("ForCausalLM", dict(TEXT, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], window_size=4)),
    "GPTNeoXJapanese": ("ForCausalLM", dict(TEXT, intermediate_multiple_size=2)), "OpenAIGPT": ("LMHeadModel", GPT), "BertGeneration": ("Decoder", dict(TEXT, is_decoder=True)), "Arcee": ("ForCausalLM", GROUPED),
    "Apertus": ("ForCausalLM", GROUPED), "SeedOss": ("ForCausalLM", GROUPED), "Dots1": ("ForCausalLM", dict(EXPERTS, n_routed_experts=4, n_shared_experts=1, first_k_dense_replace=1, n_group=2, topk_group=1)),
    "Llama4Text": ("ForCausalLM", dict(EXPERTS, interleave_moe_layer_step=1, intermediate_size_mlp=48, attention_chunk_size=16)), "MiniMax": ("ForCausalLM", dict(EXPERTS, block_size=8)), "Doge": ("ForCausalLM", GROUPED),
    "Diffllama": ("ForCausalLM", GROUPED), "DiffLlama": ("ForCausalLM", GROUPED), "Zamba2": ("ForCausalLM", GROUPED), "Mamba2": ("ForCausalLM", dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, state_size=8, num_heads=8, head_dim=8, n_groups=2, chunk_size=4)),
    "FalconMamba": ("ForCausalLM", dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, state_size=4)), "Jamba": ("ForCausalLM", dict(EXPERTS, attn_layer_period=2, attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1, use_mamba_kernels=False, mamba_d_state=4)),
    "RecurrentGemma": ("ForCausalLM", dict(GROUPED, lru_width=32, attention_window_size=8, num_hidden_layers=3)), "Rwkv": ("ForCausalLM", dict(vocab_size=99, context_length=32, hidden_size=32, num_hidden_layers=2)), "xLSTM": ("ForCausalLM", dict(vocab_size=99, hidden_size=32, num_heads=4, num_blocks=2, num_hidden_layers=2)),
    "Qwen3Next": ("ForCausalLM", dict(EXPERTS, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=8, shared_expert_intermediate_size=24, layer_types=["linear_attention", "full_attention"])), "Bamba": ("ForCausalLM", dict(GROUPED, attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=8, mamba_d_state=8, mamba_chunk_size=4)),
    "Gemma3nText": ("ForCausalLM", dict(GROUPED, hidden_size_per_layer_input=8, vocab_size_per_layer_input=99, laurel_rank=4, num_kv_shared_layers=0, layer_types=["sliding_attention", "full_attention"], activation_sparsity_pattern=[0.5, 0.0], altup_num_inputs=2, intermediate_size=48)),
    "Ministral": ("ForCausalLM", GROUPED), "Olmo3": ("ForCausalLM", dict(GROUPED, sliding_window=4)), "FlexOlmo": ("ForCausalLM", EXPERTS), "VaultGemma": ("ForCausalLM", GROUPED), "Youtu": ("ForCausalLM", GROUPED), "NanoChat": ("ForCausalLM", GROUPED),
}
ENCODERS = {
    "Longformer": dict(TEXT, attention_window=4), "BigBird": dict(TEXT, attention_type="original_full"), "Nystromformer": dict(TEXT, num_landmarks=4, segment_means_seq_len=8), "Yoso": TEXT, "Luke": dict(TEXT, entity_vocab_size=10, entity_emb_size=8), "LayoutLM": TEXT,
    "Ernie": TEXT, "Camembert": TEXT, "Flaubert": dict(emb_dim=32, n_layers=2, n_heads=4, n_words=99, max_position_embeddings=64), "XLM": dict(emb_dim=32, n_layers=2, n_heads=4, n_words=99, max_position_embeddings=64), "XLNet": dict(vocab_size=99, d_model=32, n_layer=2, n_head=4, d_inner=48),
    "IBert": TEXT, "MobileBert": dict(TEXT, embedding_size=16, intra_bottleneck_size=16, num_feedforward_networks=2), "MegatronBert": TEXT, "RemBert": dict(TEXT, input_embedding_size=16), "Splinter": TEXT, "Esm": dict(TEXT, position_embedding_type="rotary", mask_token_id=4, pad_token_id=1),
    "Lilt": TEXT, "RobertaPreLayerNorm": TEXT, "XLMRobertaXL": TEXT, "Data2VecText": TEXT, "XmodModel": TEXT, "Tapas": TEXT, "MarkupLM": dict(TEXT, max_xpath_tag_unit_embeddings=10, max_xpath_subs_unit_embeddings=10, tag_pad_id=1, subs_pad_id=1, xpath_unit_hidden_size=4, max_depth=4), "NomicBert": TEXT, "EuroBert": GROUPED, "JinaEmbeddingsV3": TEXT, "Canine": dict(TEXT, num_hash_buckets=16, local_transformer_stride=4, downsampling_rate=4), "T5Gemma": TEXT, "Reformer": dict(TEXT, attention_head_size=8, attn_layers=["local"], axial_pos_embds=False, local_attn_chunk_length=4, feed_forward_size=48, is_decoder=False),
}
PAIRS = {
    "Mbart": ("MBartForConditionalGeneration", "MBartConfig", TWO), "Blenderbot": ("BlenderbotForConditionalGeneration", "BlenderbotConfig", TWO), "BlenderbotSmall": ("BlenderbotSmallForConditionalGeneration", "BlenderbotSmallConfig", TWO),
    "PegasusX": ("PegasusXForConditionalGeneration", "PegasusXConfig", dict(TWO, block_size=4, num_global_tokens=2)), "LED": ("LEDForConditionalGeneration", "LEDConfig", dict(TWO, max_encoder_position_embeddings=64, max_decoder_position_embeddings=64, attention_window=4)), "BigBirdPegasus": ("BigBirdPegasusForConditionalGeneration", "BigBirdPegasusConfig", dict(TWO, attention_type="original_full")),
    "FSMT": ("FSMTForConditionalGeneration", "FSMTConfig", dict(TWO, langs=["a", "b"], src_vocab_size=99, tgt_vocab_size=99)), "ProphetNet": ("ProphetNetForConditionalGeneration", "ProphetNetConfig", dict(TWO, hidden_size=32, num_encoder_layers=1, num_decoder_layers=1, num_encoder_attention_heads=4, num_decoder_attention_heads=4)),
    "LongT5": ("LongT5ForConditionalGeneration", "LongT5Config", dict(vocab_size=99, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_heads=4, local_radius=3, decoder_start_token_id=0)), "UMT5": ("UMT5ForConditionalGeneration", "UMT5Config", dict(vocab_size=99, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_heads=4, decoder_start_token_id=0)),
    "SwitchTransformers": ("SwitchTransformersForConditionalGeneration", "SwitchTransformersConfig", dict(vocab_size=99, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, num_experts=2, decoder_start_token_id=0)), "NllbMoe": ("NllbMoeForConditionalGeneration", "NllbMoeConfig", dict(TWO, num_experts=2)), "Plbart": ("PLBartForConditionalGeneration", "PLBartConfig", TWO), "Mvp": ("MvpForConditionalGeneration", "MvpConfig", TWO),
}
PICTURES = {  # model, options, side, result
    "Bit": ("BitModel", dict(FOUR, embedding_size=8, num_groups=2), 32), "Cvt": ("CvtModel", dict(embed_dim=[8, 16, 24], depth=[1, 1, 1], num_heads=[1, 2, 3]), 64), "DINOv3ViT": ("DINOv3ViTModel", PATCHES, 32), "EfficientNet": ("EfficientNetModel", dict(width_coefficient=0.25, depth_coefficient=0.3, hidden_dim=16), 64), "FocalNet": ("FocalNetModel", dict(image_size=32, embed_dim=8, depths=[1, 1, 1, 1], patch_size=4), 64),
    "GLPN": ("GLPNModel", dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]), 64), "Hiera": ("HieraModel", dict(embed_dim=8, image_size=[64, 64], depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2]), 64), "MobileNetV1": ("MobileNetV1Model", dict(depth_multiplier=0.25), 64), "Pvt": ("PvtModel", dict(image_size=64, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]), 64), "PvtV2": ("PvtV2Model", dict(image_size=64, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]), 64),
    "RegNet": ("RegNetModel", dict(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], groups_width=8), 32), "SwiftFormer": ("SwiftFormerModel", dict(embed_dims=[8, 16, 24, 32], depths=[1, 1, 1, 1], mlp_ratio=2), 64), "Swin2SR": ("Swin2SRForImageSuperResolution", dict(image_size=16, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4), 16, "reconstruction"), "TextNet": ("TextNetModel", {}, 64), "ViTMSN": ("ViTMSNModel", PATCHES, 32), "VitDet": ("VitDetModel", dict(PATCHES, window_block_indices=[0], window_size=2, residual_block_indices=[], use_relative_position_embeddings=True), 32), "Data2VecVision": ("Data2VecVisionModel", dict(PATCHES, use_relative_position_bias=True), 32), "IJepa": ("IJepaModel", PATCHES, 32),
    "DepthAnything": ("DepthAnythingForDepthEstimation", None, 56, "predicted_depth"), "UperNet": ("UperNetForSemanticSegmentation", None, 64, "logits"), "ConditionalDetr": ("ConditionalDetrForObjectDetection", None, 64, "logits"), "DeformableDetr": ("DeformableDetrForObjectDetection", None, 64, "logits"), "RTDetr": ("RTDetrForObjectDetection", None, 64, "logits"), "MaskFormer": ("MaskFormerForInstanceSegmentation", None, 64, "masks_queries_logits"), "Mask2Former": ("Mask2FormerForUniversalSegmentation", None, 64, "masks_queries_logits"), "SuperPoint": ("SuperPointForKeypointDetection", dict(encoder_hidden_sizes=[8, 8, 16, 16], decoder_hidden_size=16, keypoint_decoder_dim=65, descriptor_decoder_dim=16), 32, "scores"), "SiglipVision": ("SiglipVisionModel", PATCHES, 32), "Aimv2Vision": ("Aimv2VisionModel", PATCHES, 32), "MLCDVision": ("MLCDVisionModel", PATCHES, 32), "Sam": (None, None, 32), "TimmWrapper": (None, None, 32), "LW": (None, None, 32), "ViTMAE": (None, None, 32), "EoMT": (None, None, 32), "DFine": ("DFineForObjectDetection", None, 64, "logits"), "VideoPrism": (None, None, 32), "HGNetV2": ("HGNetV2Backbone", None, 64, "feature_maps"), "MetaClip2Vision": ("MetaClip2VisionModel", PATCHES, 32), "PeVideo": (None, None, 32), "EfficientLoFTR": (None, None, 32),
}
SOUNDS = {
    "UniSpeechSat": ("UniSpeechSatModel", SOUND), "Data2VecAudio": ("Data2VecAudioModel", dict(SOUND, num_conv_pos_embeddings=5, conv_pos_kernel_size=5)), "SEWD": ("SEWDModel", dict(SOUND, squeeze_factor=2, num_feat_extract_layers=2, max_position_embeddings=64, position_buckets=16)), "Wav2Vec2Conformer": ("Wav2Vec2ConformerModel", SOUND), "Wav2Vec2Conformer_rotary": ("Wav2Vec2ConformerModel", dict(SOUND, position_embeddings_type="rotary")),
}


class Named(nn.Module):
    def __init__(self, model, names, result, **more):
        super().__init__()
        self.model, self.names, self.result, self.more = model, names, result, more

    def forward(self, *given):
        found = self.model(**dict(zip(self.names, given)), **self.more)
        if isinstance(found, torch.Tensor):
            return found
        return tuple(found[name] for name in self.result.split()) if " " in self.result else found[self.result] if self.result in found else found[0]


def tokens(*shape):
    return torch.randint(3, 99, shape)


def architectures():
    import transformers as t
    time = lambda: {0: Dim("batch", max=16), 1: Dim("time", min=2, max=32)}

    def static(model, names, args, result="last_hidden_state", **more):
        return {"model": Named(stir(model), names.split(), result, **more), "args": args}

    def moving(model, names, args, second, dynamic, result="last_hidden_state", **more):
        return {**static(model, names, args, result, **more), "second": second, "dynamic": (dynamic,)}
    for name, (kind, options) in DECODERS.items():
        if not hasattr(t, name + "Config"):
            continue
        def decoder(size, name=name, kind=kind, options=options):
            model = getattr(t, name + kind)(getattr(t, name + "Config")(**options))
            if size == "fixed":
                return static(model, "input_ids", (tokens(2, 8),), "logits", use_cache=False)
            return moving(model, "input_ids", (tokens(2, 7),), (tokens(3, 9),), (time(),), "logits", use_cache=False)
        for size in ("open", "fixed"):
            yield "arch_%s_%s" % (name, size), lambda size=size, decoder=decoder: decoder(size)
    for name, options in ENCODERS.items():
        if not hasattr(t, name + "Config"):
            continue
        def encoder(size, name=name, options=options):
            model = getattr(t, name + "Model")(getattr(t, name + "Config")(**options))
            mask = torch.ones(2, 8, dtype=torch.int64)
            mask[1, 5:] = 0
            if size == "fixed":
                return static(model, "input_ids attention_mask", (tokens(2, 8), mask))
            return moving(model, "input_ids", (tokens(2, 7),), (tokens(3, 9),), (time(),))
        for size in ("open", "fixed"):
            yield "arch_%s_%s" % (name, size), lambda size=size, encoder=encoder: encoder(size)
    for name, (kind, config, options) in PAIRS.items():
        if not hasattr(t, kind):
            continue
        yield "arch_" + name, lambda kind=kind, config=config, options=options: static(
            getattr(t, kind)(getattr(t, config)(**options)), "input_ids decoder_input_ids", (tokens(2, 8), tokens(2, 5)), "logits", use_cache=False)
    for name, row in PICTURES.items():
        if row[0] is None or not hasattr(t, row[0]):
            continue
        def picture(name=name, row=row):
            options = row[1]
            result = row[3] if len(row) > 3 else "last_hidden_state"
            resnet = lambda **more: t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], **more)
            swin = lambda **more: t.SwinConfig(image_size=64, patch_size=4, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2], window_size=4, **more)
            stages = ["stage1", "stage2", "stage3", "stage4"]
            if options is None:
                detr = dict(d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, num_queries=5, num_labels=4)
                options = {
                    "DepthAnything": lambda: dict(backbone_config=t.Dinov2Config(hidden_size=32, num_hidden_layers=4, num_attention_heads=4, image_size=56, patch_size=14, out_features=stages, reshape_hidden_states=False, apply_layernorm=True), patch_size=14, reassemble_hidden_size=32, neck_hidden_sizes=[8, 8, 12, 16], fusion_hidden_size=8, head_hidden_size=8),
                    "UperNet": lambda: dict(backbone_config=swin(out_features=stages), hidden_size=16, pool_scales=[1, 2], auxiliary_in_channels=32, auxiliary_channels=8, num_labels=4),
                    "ConditionalDetr": lambda: dict(detr, use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=resnet(out_features=["stage4"])),
                    "DeformableDetr": lambda: dict(detr, use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, num_feature_levels=3, backbone_config=resnet(out_features=["stage2", "stage3", "stage4"])),
                    "RTDetr": lambda: dict(d_model=32, encoder_hidden_dim=32, encoder_in_channels=[16, 24, 32], feat_strides=[8, 16, 32], encoder_ffn_dim=48, encoder_attention_heads=4, decoder_layers=1, decoder_attention_heads=4, decoder_ffn_dim=48, num_queries=5, num_denoising=0, num_labels=4, decoder_in_channels=[32, 32, 32], backbone_config=t.RTDetrResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], out_features=["stage2", "stage3", "stage4"], layer_type="basic"), disable_custom_kernels=True),
                    "DFine": lambda: dict(d_model=32, encoder_hidden_dim=32, encoder_in_channels=[16, 24, 32], feat_strides=[8, 16, 32], encoder_ffn_dim=48, encoder_attention_heads=4, decoder_layers=1, decoder_attention_heads=4, decoder_ffn_dim=48, num_queries=5, num_denoising=0, num_labels=4, decoder_in_channels=[32, 32, 32]),
                    "MaskFormer": lambda: dict(backbone_config=swin(out_features=stages), fpn_feature_size=16, mask_feature_size=16, decoder_config=t.DetrConfig(**detr), num_labels=4),
                    "Mask2Former": lambda: dict(backbone_config=swin(out_features=stages), feature_size=16, mask_feature_size=16, hidden_dim=32, encoder_feedforward_dim=48, encoder_layers=1, decoder_layers=2, num_attention_heads=4, dim_feedforward=48, num_queries=5, num_labels=4, common_stride=4),
                    "HGNetV2": lambda: dict(),
                }[name]()
            model = getattr(t, row[0])(getattr(t, name + "Config")(**options))
            return static(model, "pixel_values", (torch.randn(2, 3, row[2], row[2]),), result)
        yield "arch_" + name, picture
    for name, (kind, options) in SOUNDS.items():
        yield "arch_" + name, lambda name=name, kind=kind, options=options: static(
            getattr(t, kind)(getattr(t, kind[:-5] + "Config")(**options)), "input_values", (torch.randn(2, 800),))
    for name, build in others(t):
        yield "arch_" + name, lambda build=build: static(*build())


def others(t):
    vision = dict(SMALL, image_size=32, patch_size=8)
    both = dict(text_config=dict(TEXT), vision_config=dict(vision), projection_dim=16)
    pair = lambda: (tokens(2, 6), torch.randn(2, 3, 32, 32))
    yield "CLIP", lambda: (t.CLIPModel(t.CLIPConfig(**both)), "input_ids pixel_values", pair(), "logits_per_text")
    yield "Siglip", lambda: (t.SiglipModel(t.SiglipConfig(text_config=dict(TEXT), vision_config=vision)), "input_ids pixel_values", pair(), "logits_per_text")
    yield "CLIPSeg", lambda: (t.CLIPSegForImageSegmentation(t.CLIPSegConfig(**both, extract_layers=[0, 1], reduce_dim=8, decoder_num_attention_heads=2, decoder_intermediate_size=16)), "input_ids pixel_values", pair(), "logits")
    yield "OwlViT", lambda: (t.OwlViTForObjectDetection(t.OwlViTConfig(**both)), "input_ids pixel_values", (tokens(2, 6), torch.randn(1, 3, 32, 32)), "logits pred_boxes")
    yield "GroupViT", lambda: (t.GroupViTModel(t.GroupViTConfig(text_config=dict(TEXT), vision_config=dict(vision, depths=[1, 1, 1], num_group_tokens=[4, 2, 0], num_output_groups=[4, 2, 0]))), "input_ids pixel_values", pair(), "logits_per_text")
    yield "AltCLIP", lambda: (t.AltCLIPModel(t.AltCLIPConfig(text_config=dict(TEXT, project_dim=16), vision_config=vision, projection_dim=16)), "input_ids pixel_values", pair(), "logits_per_text")
    yield "VisualBert", lambda: (t.VisualBertModel(t.VisualBertConfig(**TEXT, visual_embedding_dim=16)), "input_ids visual_embeds", (tokens(2, 6), torch.randn(2, 3, 16)))
    yield "Lxmert", lambda: (t.LxmertModel(t.LxmertConfig(**TEXT, visual_feat_dim=16, l_layers=1, x_layers=1, r_layers=1)), "input_ids visual_feats visual_pos", (tokens(2, 6), torch.randn(2, 3, 16), torch.rand(2, 3, 4)), "language_output vision_output")
    yield "Vivit", lambda: (t.VivitModel(t.VivitConfig(**SMALL, image_size=32, num_frames=4, tubelet_size=[2, 8, 8])), "pixel_values", (torch.randn(2, 4, 3, 32, 32),))
    yield "Speech2Text", lambda: (t.Speech2TextForConditionalGeneration(t.Speech2TextConfig(**TWO, input_feat_per_channel=16, input_channels=1, conv_channels=16, max_source_positions=64, max_target_positions=64)), "input_features decoder_input_ids", (torch.randn(2, 24, 16), tokens(2, 5)), "logits")
    yield "Wav2Vec2Bert", lambda: (t.Wav2Vec2BertModel(t.Wav2Vec2BertConfig(**SMALL, feature_projection_input_dim=16)), "input_features", (torch.randn(2, 20, 16),))
    yield "Clap_audio", lambda: (t.ClapAudioModel(t.ClapAudioConfig(spec_size=64, num_mel_bins=16, hidden_size=32, patch_size=4, patch_stride=[4, 4], window_size=4, depths=[1, 1], num_attention_heads=[2, 2], patch_embeds_hidden_size=16, num_hidden_layers=2)), "input_features", (torch.randn(2, 1, 256, 16),))
    yield "Encodec", lambda: (t.EncodecModel(t.EncodecConfig(hidden_size=16, num_filters=4, codebook_size=16, upsampling_ratios=[4, 2], num_lstm_layers=1, target_bandwidths=[24.0], sampling_rate=800)), "input_values", (torch.randn(1, 1, 320),), "audio_values")
    yield "Dac", lambda: (t.DacModel(t.DacConfig(encoder_hidden_size=4, downsampling_ratios=[2, 2], decoder_hidden_size=16, n_codebooks=2, codebook_size=16, codebook_dim=4)), "input_values", (torch.randn(1, 1, 160),), "audio_values")
    yield "Mimi", lambda: (t.MimiModel(t.MimiConfig(hidden_size=32, num_filters=4, upsampling_ratios=[4, 2], codebook_size=16, codebook_dim=8, vector_quantization_hidden_dimension=8, num_quantizers=2, num_semantic_quantizers=1, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=4, head_dim=8, intermediate_size=48, upsample_groups=32)), "input_values", (torch.randn(1, 1, 320),), "audio_values")
    yield "Vits_text", lambda: (t.VitsModel(t.VitsConfig(vocab_size=40, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, ffn_dim=48, flow_size=16, spectrogram_bins=9)).text_encoder, "input_ids padding_mask", (torch.randint(1, 40, (2, 7)), torch.ones(2, 7, 1)))
    yield "TimeSeriesMixer", lambda: (t.PatchTSMixerModel(t.PatchTSMixerConfig(context_length=32, patch_length=8, patch_stride=4, num_input_channels=2, d_model=16, num_layers=2)), "past_values", (torch.randn(2, 32, 2),))
    yield "TimesFm", lambda: (t.TimesFmModel(t.TimesFmConfig(patch_length=8, context_length=32, horizon_length=8, hidden_size=32, intermediate_size=32, head_dim=8, num_hidden_layers=1, num_attention_heads=4)), "past_values past_values_padding freq", (torch.randn(2, 32), torch.zeros(2, 32, dtype=torch.int64), torch.zeros(2, 1, dtype=torch.int64)))
    yield "DecisionTransformer", lambda: (t.DecisionTransformerModel(t.DecisionTransformerConfig(state_dim=5, act_dim=3, hidden_size=32, n_layer=1, n_head=4, max_ep_len=20)), "states actions rewards returns_to_go timesteps", (torch.randn(2, 4, 5), torch.randn(2, 4, 3), torch.randn(2, 4, 1), torch.randn(2, 4, 1), torch.arange(4).repeat(2, 1)), "action_preds")
    yield "Perceiver", lambda: (t.PerceiverModel(t.PerceiverConfig(num_latents=4, d_latents=16, d_model=32, num_blocks=1, num_self_attends_per_block=2, num_self_attention_heads=2, num_cross_attention_heads=2)), "inputs", (torch.randn(2, 6, 32),))
    yield "ImageGPT", lambda: (t.ImageGPTModel(t.ImageGPTConfig(**GPT)), "input_ids", (tokens(2, 8),))
    yield "TrOCR", lambda: (t.TrOCRForCausalLM(t.TrOCRConfig(vocab_size=99, d_model=32, decoder_layers=1, decoder_attention_heads=4, decoder_ffn_dim=48, max_position_embeddings=64)), "input_ids", (tokens(2, 8),), "logits")
    yield "Bros", lambda: (t.BrosModel(t.BrosConfig(**TEXT)), "input_ids bbox", (tokens(2, 6), torch.rand(2, 6, 4)))
    yield "LayoutLMv3", lambda: (t.LayoutLMv3Model(t.LayoutLMv3Config(**TEXT, input_size=32, patch_size=8, coordinate_size=5, shape_size=6)), "input_ids bbox pixel_values", (tokens(2, 6), torch.randint(0, 100, (2, 6, 4)).sort(-1).values, torch.randn(2, 3, 32, 32)))
    yield "ViTMAE_decoder", lambda: (t.BeitForMaskedImageModeling(t.BeitConfig(**PATCHES, vocab_size=20)), "pixel_values", (torch.randn(2, 3, 32, 32),), "logits")
    yield "SuperGlue_resnet", lambda: (t.ResNetForImageClassification(t.ResNetConfig(**FOUR, embedding_size=8, num_labels=4, layer_type="basic")), "pixel_values", (torch.randn(2, 3, 33, 35),), "logits")
