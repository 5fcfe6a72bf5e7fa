"""The processes that run beside us: the zygote and the shims it forks. Standard library only, few imports, no
threads.
"""
