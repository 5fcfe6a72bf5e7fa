"""The async heart: one file a stage, one writer. It knows only the kernel and the ports."""
