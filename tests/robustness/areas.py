"""All areas by name."""

from __future__ import annotations

from tests.robustness import calls, files, kills, requests
from tests.robustness.harness import Area

AREAS = {
    area.name: area
    for area in (
        Area("suggestions", "random spaces: legal, finite, unrepeated, reproducible suggestions", calls.suggestions),
        Area("refusals", "hostile arguments of every public function", calls.refusals),
        Area("past-runs", "hostile past runs over all methods", calls.past_runs),
        Area("imports", "damaged files of every kind that can be imported", files.imports),
        Area("databases", "a memory whose database has changed cells", files.databases),
        Area("kills-sqlite", "workers killed in the middle of writes to SQLite", kills.sqlite, longest=300.0),
        Area("kills-journal", "the same with Optuna's journal file", kills.journal, longest=300.0),
        Area("kills-postgres", "the same with PostgreSQL", kills.postgres, longest=300.0),
        Area("requests", "slow and malformed requests to the dashboard", requests.requests),
    )
}
