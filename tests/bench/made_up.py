"""Suites and records for the tests of tables and figures."""

from timesliver.bench.store import Record
from timesliver.bench.suites import Catalogue, Suite


def make_suite(groups, tables=(), figures=(), labels=None, presets=("quick",)):
    def listed(field):
        return {name: {"options": {}} for group in groups for name in group.get(field, ())}

    backbones = {
        name: {"options": {}}
        for group in groups
        for name in group.get("options", {}).get("backbone", ())
    }

    explainers = {name.partition("/")[0]: {} for name in listed("explainers")}
    models = {**backbones, **listed("models")}
    catalogue = Catalogue(listed("datasets"), models, explainers, dict(labels or {}))
    presets = {name: {} for name in presets}
    return Suite(
        "made",
        "Made up",
        "For tests.",
        catalogue,
        presets,
        list(groups),
        list(tables),
        list(figures),
    )


def run_all(suite, perform, preset="quick"):
    """Return records: perform gives a result, "failed", "na", or None for a job not run."""
    records = {}
    for job in suite.jobs(preset):
        found = perform(job)
        if isinstance(found, dict):
            records[job.hash] = Record(job.hash, job.to_dict(), "done", found)
        elif found is not None:
            records[job.hash] = Record(job.hash, job.to_dict(), found, {}, "why")
    return records
