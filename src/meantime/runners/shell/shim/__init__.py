"""What runs beside us: the zygote and the shims it forks. Standard library only, few imports, no threads."""
