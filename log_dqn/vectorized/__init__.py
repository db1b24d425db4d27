"""Many independent runs on one device; needs neither TensorFlow nor Dopamine.

An array of several runs has the run as its first axis. The functions that a run consists of
(`networks`, `replay`, `agents`) are written for one run; `learner` batches them with `vmap`.
"""
