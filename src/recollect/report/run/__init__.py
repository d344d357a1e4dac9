"""The report of one run: `report_run` from a memory, `write_report` from a result, `run_report` from its story."""

from recollect.report.run.page import report_run, run_report, write_report

__all__ = ["report_run", "run_report", "write_report"]
