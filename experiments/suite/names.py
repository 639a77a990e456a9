"""Plain names of the suite's classifiers: the files' names are their sources'."""

from __future__ import annotations

__all__ = ["LATER", "SEPARATE_TEST", "TRAINED_HERE", "plain_name", "source_of"]

_NAMES = {
    "20news_labelerrors_cv": "newsgroup posts (20 classes)",
    "banking77_qwen3-1.7b_zero_shot": "bank questions, language model, no examples (77)",
    "cifar100_labelerrors_cv": "photos, cross-validated network (100)",
    "cifar100_netcal_lenet5": "photos, poor network (100)",
    "cifar100_netcal_wrn16-4": "photos, good network (100)",
    "cifar10_netcal_lenet5": "photos, poor network (10)",
    "cifar10_netcal_wrn16-4": "photos, good network (10)",
    "cifar10_verifiedcal_vgg": "photos, another good network (10)",
    "iemocap4_wav2vec2-fusion": "emotion in speech, other speakers in test (4)",
    "imagenet5k_lite0_blur00": "ImageNet, sharp (1,000)",
    "imagenet5k_lite0_blur04": "ImageNet, blurred (1,000)",
    "langid67_single-words": "language of one word (67)",
    "llm_emotion4_qwen-1.8b_0shot": "emotion, language model's answer letter (4)",
    "llm_mmlu16_llama13b": "exam questions, language model's answer letter (4)",
    "pathmnist_resnet50": "tissue, another hospital (9)",
    "snphotcc3_wavelets-nb": "supernovae, naive Bayes (3)",
    "text_banking77_5shot_minilm_lr": "bank questions, five examples per class (77)",
    "transients13_randomforest": "light curves, random forest (13)",
    "uavhuman_v1val_degcn_joint": "human actions, joints (155)",
    "uavhuman_v1val_sttformer_motion": "human actions, motion (155)",
    "uavhuman_v2_ctrgcn_k1": "human actions, other people in test, first network (155)",
    "uavhuman_v2_infogcn_k2_vel": "human actions, other people in test, velocities (155)",
    "uavhuman_v2_mixformer_k8": "human actions, other people in test, third network (155)",
    "vlm_mmbench_mobilevlm-1.7b": "pictures, vision-language model's answer letter (4)",
    "letter26_gnb": "letters, naive Bayes (26)",
    "segment7_qda": "image segments, naive Bayes (7)",
    "calhousing8_lda": "house prices in bins, linear model (8)",
    "spambase2_gnb": "spam, naive Bayes (2)",
    "tweet_emotion_nb": "emotion in tweets, naive Bayes (4)",
    "wnut17_ner_tokens_lr": "named entities, other sites in test (13)",
    "chestxray14_reproduce-chexnet": "chest X-rays (14 labels)",
    "coco_tresnetxl": "objects in pictures (80 labels)",
    "dialogre_bert_testonly": "relations in dialogues (36 labels)",
    "ptbxl_xresnet1d101": "electrocardiograms (71 labels)",
}

TRAINED_HERE = frozenset(
    {
        "calhousing8_lda",
        "letter26_gnb",
        "segment7_qda",
        "spambase2_gnb",
        "text_banking77_5shot_minilm_lr",
        "tweet_emotion_nb",
        "wnut17_ner_tokens_lr",
    }
)
"""Simple models that were trained for the collection; others made the rest."""

SEPARATE_TEST = frozenset(
    {
        "iemocap4_wav2vec2-fusion",
        "tweet_emotion_nb",
        "uavhuman_v2_ctrgcn_k1",
        "uavhuman_v2_infogcn_k2_vel",
        "uavhuman_v2_mixformer_k8",
        "wnut17_ner_tokens_lr",
    }
)
"""Those whose test rows are a set of their own; for the others one set was halved."""

LATER = (
    *("letter26_gnb", "segment7_qda", "calhousing8_lda", "spambase2_gnb"),
    *("tweet_emotion_nb", "wnut17_ner_tokens_lr"),
)
"""Classifiers that came after the small menu of alternating normalization had been found."""


def plain_name(classifier: str) -> str:
    """What a reader calls the classifier; the file's name if there is nothing better."""
    return _NAMES.get(classifier, classifier)


def source_of(classifier: str) -> str:
    """The data that a classifier was measured on: those of one source are no separate evidence."""
    parts = classifier.removeprefix("text_").split("_")
    if parts[0].startswith("cifar"):
        return "cifar"
    return "_".join(parts[:2]) if parts[0] in ("llm", "vlm") else parts[0]
