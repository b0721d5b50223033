"""Jobs that cost nothing, for tests of the runner. Worker processes import this module."""

import os
import time
from pathlib import Path

import torch

from timesliver.bench.jobs import Job
from timesliver.errors import NotApplicableError


def jobs(n=4, **options):
    pairs = tuple(options.items())
    return [Job("localise", f"set{i}", "CNN", "random", seed=i, options=pairs) for i in range(n)]


def no_prerequisites(job):
    return []


def training(job):
    """Jobs that explain need the training of their model."""
    return [] if job.task == "train" else [Job("train", job.dataset, job.model, seed=job.seed)]


def log(cache, *words):
    """Note what was done, in a file beside the cache."""
    cache.folder.parent.mkdir(exist_ok=True)
    with (cache.folder.parent / "log").open("a") as file:
        file.write(" ".join(map(str, words)) + "\n")


def perform(job, cache):
    options = dict(job.options)
    assert torch.get_num_threads() == 1
    log(cache, "begin", job.hash, os.getpid())
    time.sleep(options.get("sleep", 0))
    if job.model == options.get("fails"):
        raise ZeroDivisionError("no way")
    if job.model == options.get("na"):
        raise NotApplicableError("this needs\nattention")
    if job.model == options.get("kills"):
        os.kill(os.getpid(), 9)
    generator = torch.Generator().manual_seed(job.seed)
    log(cache, "end", job.hash, os.getpid())
    value = torch.randn(3, generator=generator).tolist()
    return {"value": value, "pid": os.getpid()} if "pid" in options else {"value": value}


def perform_with_model(job, cache):
    """Train once, however many jobs need the model; a job of its own trains it."""
    options = dict(job.options)

    def make():
        log(cache, "trains", job.dataset)
        time.sleep(0.3)
        return f"{job.dataset} {job.model}"

    key = {"dataset": job.dataset, "model": job.model}
    text = cache.get_or_make(key, make, lambda v, p: p.write_text(v), Path.read_text, ".txt")
    if job.task == "train" and job.dataset == options.get("fails", "bad"):
        raise ValueError("diverged")
    return {"text": text}
