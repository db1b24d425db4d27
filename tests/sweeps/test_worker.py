"""What a sweep's worker reports, without Ray."""

import pathlib

from log_dqn.sweeps import plan, worker


def test_a_job_that_cannot_be_started_fails_and_is_not_tried_again(tmp_path):
    (tmp_path / "log_dqn").write_text("a file where the folder of an agent should be")
    run = plan.Run("log_dqn/Pong/1", tmp_path / "log_dqn" / "Pong" / "1", 2, 100)
    output = pathlib.Path(run.folder) / "output.log"
    of_job = object.__new__(worker.Worker)
    of_job._take(plan.Job("log_dqn/Pong/1", ("-c", "pass"), (run,), output))
    report = of_job.step()
    assert report["failure"].startswith("can't be started: ")
    assert "Not a directory" in report["failure"] or "File exists" in report["failure"]
    assert (report["done"], report["death"]) == (True, None)
