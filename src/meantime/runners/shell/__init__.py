"""Shell commands that outlive us: a small shim per command, forked from a small zygote."""
