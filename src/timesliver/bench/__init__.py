"""The benchmark: jobs, a store of their results, and engines that run what is missing.

A suite is a list of jobs; the runner does those that the store does not hold yet; tables and
figures are made from the store alone.
"""
