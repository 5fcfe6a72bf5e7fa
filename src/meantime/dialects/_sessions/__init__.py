"""The common part of the dialects of seeds 000 and 001: agents that work in sessions of their own, five
statuses, five tools. They differ in their names, in forks, and in how they tell of endings.
"""
